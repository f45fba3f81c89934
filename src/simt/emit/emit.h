/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.h - write a kernel as C: declarations shared by the writers.
 *
 * emit_kernel() (emit.c) drives: per block a schedule of items, each either
 * one scalar or memory instruction or a segment of lane-parallel ones.
 * emit_operand.c turns operands into C text, emit_alu.c writes arithmetic from
 * ptx_ops.def, emit_memory.c memory accesses, emit_warp.c operations of the whole warp.
 *
 * Names in the C text: r12 a uniform register, p12 the bits of a varying
 * predicate, v12_3 the third value of a varying register inside a segment,
 * fr the frame with the lanes of varying registers, m the active lanes.
 *
 * The first instruction that cannot be written sets `failed` and the error;
 * the writers then continue harmlessly and the caller stops.
 */
#ifndef SIMT_EMIT_H
#define SIMT_EMIT_H

#include "base/buf.h"
#include "simt/emit/abi.h"
#include "simt/emit/translate.h"
#include "simt/ir/affine.h"
#include "simt/ir/ir.h"
#include "simt/ir/register_frame.h"
#include "simt/ir/shared_arrays.h"

enum reg_class { CLASS_P, CLASS_I, CLASS_F, CLASS_Q };

/* A row of ptx_ops.def; lists end with MOD_NONE unless they are full. */
enum { MAX_LIST = 4 };
struct op_row {
    enum ptx_op op;
    uint16_t required[MAX_LIST], optional[MAX_LIST], types[MAX_LIST];
    const char *sig;
    enum { HOW_EACH, HOW_CALL, HOW_LANE } how;
    enum sw_class cls;
    const char *text;
};

/* Shared by all kernels of one translation. */
struct emit_unit {
    struct ptx_module *m;
    struct arena *a;
    struct buf helpers, vars;
    bool *row_used;
    bool *pair_used; /* per row and modifiers: pairs of halves have a function */
    int lanes;
    struct strmap var_names; /* global variables written so far */
    int var_count;
    int *var_ids;
    struct simt_refusal *refusal; /* may be NULL */
};

struct emit {
    struct emit_unit *unit;
    struct ir *ir;
    struct ptx_kernel *k;
    struct arena *a;
    struct buf *out, *sites, *regs;
    int site_count, reg_count;
    struct block_plan *plan;       /* per block */
    int *slot;                     /* frame offset of a varying register, -1: none */
    const struct ptx_var **arrays; /* per register: of shared memory, the array it points into */
    int frame;
    int scratch;          /* bytes of scratch in use by the call being written */
    int addr_at;          /* offset of the lanes of the address last asked for */
    int64_t stride, wrap; /* of the address last asked for, when it is affine */
    int regs_at;          /* of the next site, in the table of registers */
    bool vec;             /* inside a segment */
    struct buf *loads;    /* where a segment's loads go, when not where they are needed */
    int *version;         /* value of a register in this segment; 0: not loaded */
    int *loaded;
    /* The current value of a register where a guard blended it: what the lanes have that the guard
     * holds for, and what the others have. */
    struct blend {
        int stamp, version, pred, pred_version;
        const char *on, *off;
    } * blend;
    /* Registers that this block's segments may load themselves: block + 1, the first load of the
     * group and of all groups that are treated together. */
    struct strip_reg {
        int block, group, set, addr;
        int64_t off;
    } * strip;
    bool strips; /* the segment being written does */
    /* machine register of a sum in the segment being written, 0: the compiler's choice */
    int *home;
    int *direct; /* block + 1: there the register is read where it was loaded from (q12) */
    int *quad;   /* its load + 1, where that is of four words a lane */
    /* the segment being written stores these words itself, or NULL */
    const struct insn *quad_store;
    int quad_site;
    int *final; /* index of its last definition in this segment; -1: not needed after it */
    int stamp;
    int temp;
    bool many_pairs; /* of halves: functions do them */
    bool divided;    /* lanes may have to wait for each other */
    bool parks;      /* a collective may have to wait for lanes */
    int block;       /* being written */
    /* Blocks that run once, if they have many memory instructions: those are written as calls
     * there, to save compile time. NULL: none. */
    bool *once;
    uint64_t shared_static, shared_align, dynamic_at;
    bool uses_dynamic;
    unsigned strong; /* SW_K_SPINS, SW_K_ORDERS */
    uint64_t local_bytes;
    bool failed;
    struct error *err;
};

/* Waiting lanes need their own value of the register, so a result is blended in. */
static inline bool keeps(const struct emit *e, int reg)
{
    return block_keeps(&e->ir->block[e->block], reg);
}

bool emit_kernel(struct emit_unit *unit, struct ptx_kernel *k, bool rows, int number,
                 struct buf *out, struct emit *state, struct error *err);
bool emit_fail(struct emit *e, const struct insn *in, const char *why);

/* emit_operand.c */
enum reg_class reg_class(const struct emit *e, int reg);
int reg_slot(struct emit *e, int reg);
const char *value(struct emit *e, const struct insn *in, const struct opnd *o, char letter);
const char *scalar_value(struct emit *e, const struct insn *in, const struct opnd *o, char letter);
void assign(struct emit *e, const struct insn *in, const struct opnd *dst, const char *text,
            enum reg_class from);
void assign_reg(struct emit *e, const struct insn *in, int reg, const char *text);
const char *pred_bits(struct emit *e, const struct insn *in, const struct opnd *o);
/* Frame offset of 32 lanes of the operand; lanes_of() as C text. */
int lanes_at(struct emit *e, const struct insn *in, const struct opnd *o, bool wide);
const char *lanes_of(struct emit *e, const struct insn *in, const struct opnd *o, bool wide);
int scratch_take(struct emit *e, const struct insn *in);
void set_uniform(struct emit *e, const struct opnd *dst, const char *text);
bool operand_uniform(const struct emit *e, const struct opnd *o);
const char *symbol_address(struct emit *e, const struct insn *in, const struct opnd *o);

/* The word that all lanes of this chunk share, or NULL. */
const char *segment_word(struct emit *e, const struct opnd *o);
/* The current value of a varying register in the running segment. */
const char *segment_value(struct emit *e, int reg);
/* A name for the register's next value, which becomes the current one. */
const char *segment_next(struct emit *e, int reg);
/* A chunk of the lanes has it from one place of shared memory, and NEON multiplies by one word. */
bool is_one_word(const struct emit *e, int reg);

/* emit_vector_access.c: four words a lane, read and written by the segment where they lie */
struct item;
bool is_quad_load(const struct emit *e, const struct insn *in);
int quad_slots(struct emit *e, const struct opnd *v);
void quad_read(struct emit *e, int reg);
bool quad_store_begin(struct emit *e, const struct item *seg, const struct item *next, int index,
                      const int *last);
bool quad_holds(const struct emit *e, int reg);
void quad_write(struct emit *e);
void quad_store_end(struct emit *e);

/* emit_accumulators.c: a segment of multiply-adds with its sums in machine registers; false: it is
 * none */
bool sums_begin(struct emit *e, const struct item *it);
void sums_end(struct emit *e, const struct item *it);
void emit_sum(struct emit *e, const struct insn *in);

/* emit.c, emit_loop.c: a uniform instruction; a loop of one block without calls */
void write_scalar(struct emit *e, const struct insn *in);
bool loop_alone(const struct emit *e, int b);
void write_loop_alone(struct emit *e, int b);

/* emit_flow.c: how a block begins, how it ends, and what the function has of waiting lanes */
void write_head(struct emit *e, int b);
void write_branch(struct emit *e, int b);
void write_waits(const struct emit *e, struct buf *out);
void write_scheduler(struct emit *e);

/* emit_affine.c */
bool is_affine(const struct emit *e, int reg);
void emit_affine(struct emit *e, const struct insn *in);
const char *affine_test(struct emit *e, const struct insn *in);
void affine_lanes(struct emit *e, int reg, int at);
const char *affine_vector(struct emit *e, int reg);
const char *affine_wrap(struct emit *e, int reg);

/* emit_alu.c */
const struct op_row *op_find(const struct insn *in, enum ptx_op op);
enum sw_class op_class(const struct insn *in);
void emit_alu(struct emit *e, const struct insn *in);                  /* scalar or lane-parallel */
const char *named(struct emit *e, const char *text, const char *type); /* a C variable for it */
/* emit_move.c; false: not one of them */
bool emit_move(struct emit *e, const struct insn *in);
void emit_cvt(struct emit *e, const struct insn *in);
int op_row_count(void);
void emit_bits(struct emit *e, const struct insn *in);

/* emit_memory.c, emit_warp.c: calls on whole warps, by a table of opcodes with at least so many
 * operands; false: the opcode is not in it. */
struct emit_row {
    enum ptx_op op;
    int args;
    void (*write)(struct emit *, const struct insn *);
};
bool emit_by_table(struct emit *e, const struct insn *in, const struct emit_row *rows, size_t n);
/* Do the instructions define the register? */
bool emit_defines(const struct emit *e, const int *insn, int count, int reg);
void emit_call(struct emit *e, const struct insn *in);
/* The registers of the next site, one after the other; -1: none. */
void site_reg(struct emit *e, int offset);
/* Writes what address_of(), spread_address() and site_reg() prepared into the site. */
int emit_site(struct emit *e, const struct insn *in, enum ptx_space space, unsigned esize, int vec,
              unsigned flags, int64_t off, unsigned kind);
/* A load of 32 words in a row, known to be one when the kernel is written. */
bool emit_loads_row(const struct emit *e, const struct insn *in);
/* The site of a load or store in a group. */
int emit_group_site(struct emit *e, const struct insn *in);
bool emit_memory(struct emit *e, const struct insn *in);
bool emit_warp(struct emit *e, const struct insn *in);
const char *address_of(struct emit *e, const struct insn *in, const struct opnd *o,
                       enum ptx_space *space, int64_t *off, bool *a32, bool *uniform);
uint32_t mma_kind(const struct insn *in, unsigned *flops); /* 0: unknown */

/* emit_blackwell.c */
void emit_tcgen05(struct emit *e, const struct insn *in);

/* emit_hopper.c: what sm_90 added */
bool emit_hopper(struct emit *e, const struct insn *in);       /* false: not one of them */
uint32_t hopper_flops(const struct insn *in, unsigned *flops); /* of one warp; 0: no wgmma */

#endif
