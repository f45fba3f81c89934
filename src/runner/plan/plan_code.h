/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_code.h - a plan's PTX, read for the interpreter.
 *
 *     plan_code_read(ptx, a, &code, &line, err)       what is wrong with it: ERROR_JUDGED
 *     plan_machine_run(&machine, err)                 plan_machine.h
 *
 * NVRTC compiles a plan as device code (docs/kernel-abi.md) into a few functions of plain
 * arithmetic. They are decoded into one flat array of instructions. The text is untrusted: a plan
 * may contain inline assembly.
 *
 * Invariants, which the interpreter relies on
 * 1. Register numbers are below the function's reg_count.
 * 2. Targets are instructions of the same function, whose last is always `ret`.
 * 3. Slots lie inside the function's frame_bytes.
 * 4. A called function has a body, or is one of enum plan_call with the
 *    parameters plan.h declares.
 * All other numbers (addresses, indexes into tables) are checked at run time.
 */
#ifndef RUNNER_PLAN_CODE_H
#define RUNNER_PLAN_CODE_H

#include "base/error.h"
#include "base/mem.h"
#include "simt/ptx/ptx.h"

#include <stdint.h>

enum {
    PLAN_MAX_PTX_BYTES = 16 << 20,
    PLAN_MAX_INSNS = 1 << 18,
    PLAN_MAX_FUNCTIONS = 4096,
    PLAN_MAX_REGS = 1 << 16,        /* of a function */
    PLAN_MAX_CONST_BYTES = 1 << 20, /* of module variables */
    PLAN_STACK_BYTES = 1 << 20,
    PLAN_MAX_PARAMS = 64,
    PLAN_MAX_TARGETS = 4096, /* of a switch */
};
#define PLAN_ENTRY      "cutegen_plan_abi_2"
#define PLAN_CONST_BASE UINT64_C(0x30000000)
#define PLAN_STACK_BASE UINT64_C(0x40000000)

/* The operations that are supported. (clang-format 14 does not format this list stably.) */
/* clang-format off */
#define PLAN_OPS(X) \
    X(ld) X(st) X(mov) X(cvta) X(cvt) X(bra) X(brx) X(call) X(ret) X(exit) \
    X(trap) X(add) X(sub) X(mul) X(mad) X(div) X(rem) X(min) X(max) X(neg) \
    X(abs) X(and) X(or) X(xor) X(not) X(shl) X(shr) X(setp) X(selp) X(prmt) \
    X(popc) X(clz) X(fma) X(sqrt) X(rcp)
/* clang-format on */

enum plan_op {
#define PLAN_OP(name) OP_##name,
    PLAN_OPS(PLAN_OP)
#undef PLAN_OP
        PLAN_OP_COUNT
};
extern const char *const plan_op_names[];

/* Functions without a body in plan.h: the planner implements them. */
enum plan_call {
    PLAN_CALL_NONE,
    PLAN_CALL_LAUNCH,
    PLAN_CALL_CLEAR,
    PLAN_CALL_WORKSPACE,
    PLAN_CALL_MAP,
    PLAN_CALL_FAIL,
    PLAN_CALL_RETURN
};

enum plan_part { PART_LO, PART_HI, PART_WIDE };
enum plan_compare { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_NUM, CMP_NAN };
enum plan_round { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP };

struct plan_operand {
    enum { FROM_NOTHING, FROM_REG, FROM_BITS, FROM_FRAME } kind;
    int reg;
    uint64_t
        bits; /* FROM_BITS: the value; FROM_FRAME: bytes into the frame; an offset with a reg */
};

struct plan_insn {
    uint8_t op;      /* enum plan_op */
    uint8_t type;    /* enum ptx_type: the result's */
    uint8_t from;    /* cvt: the operand's */
    uint8_t part;    /* mul, mad: enum plan_part */
    uint8_t compare; /* setp: enum plan_compare */
    uint8_t round;   /* enum plan_round */
    uint8_t count;   /* ld, st: elements */
    bool unordered;  /* setp: true for NaN */
    bool to_integer; /* cvt: .rni and the like */
    bool pred_not;
    int pred;                    /* register, or -1 */
    int line;                    /* in the candidate; 0: in one of our headers */
    struct plan_operand a[4];    /* result first; ld, st: the elements */
    struct plan_operand address; /* ld, st */
    int target;                  /* bra: instruction; call: function */
    const int *list;             /* brx: instructions; call: slots of the arguments */
    int list_count, result;      /* call: slot of the result, or -1 */
};

struct plan_slot {
    const char *name;
    uint32_t at, bytes; /* in the frame */
};

struct plan_function {
    const char *name;
    enum plan_call call; /* the planner's: no body */
    int first;           /* instruction */
    int reg_count;
    struct plan_slot *slot; /* parameters, the result, variables, arguments of calls */
    int slot_count, slot_cap;
    int param_first, param_count, result; /* slots; result: -1 when there is none */
    uint32_t frame_bytes;
};

struct plan_code {
    struct plan_insn *insn;
    int insn_count, insn_cap;
    struct plan_function *fn; /* numbered as the module's */
    int fn_count, entry;
    unsigned char *constants; /* at PLAN_CONST_BASE */
    uint32_t constant_bytes;
};

/* `line`: of the candidate, where the error has one. All lives in `a`. */
bool plan_code_read(struct text ptx, struct arena *a, struct plan_code *out, int *line,
                    struct error *err);

/* ---- between plan_read.c and plan_body.c ---------------------------------- */

struct plan_reader {
    struct ptx_module m;
    struct plan_code *code;
    struct arena *a;
    uint64_t *var_address; /* by the module's variable number */
    int user_file, line;   /* the candidate's file number; position of the reader */
};

/* Parameters and result of function `index`, then its body; all headers first. */
bool plan_header_read(struct plan_reader *r, int index, struct error *err);
bool plan_body_read(struct plan_reader *r, int index, struct error *err);

#endif
