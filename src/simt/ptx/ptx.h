/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx.h - the result of reading PTX text: a module and flat kernel bodies.
 *
 * ptx_module_read() scans a module: files, variables, functions with the place
 * of their bodies. ptx_kernel_read() reads the body of one kernel and of what
 * it calls, with every call replaced by the body called, so that everything
 * after the reader sees one list of instructions. Functions that no launched kernel reaches are
 * skipped.
 *
 * Everything is in the caller's arena and borrows the text.
 *
 * Invariants
 * 1. Malformed text is an ERROR_JUDGED struct error that names the line.
 * 2. insn.args point into the arena; label operands are resolved to insn indexes.
 * 3. An instruction names at most MAX_INSN_REGS registers; more are an error.
 * 4. Registers are numbered 0..reg_count-1 per kernel, also across inlined calls.
 */
#ifndef SIMT_PTX_H
#define SIMT_PTX_H

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "simt/ptx/ptx_opcode.h"
#include "simt/ptx/string_map.h"

#include <stdint.h>

enum ptx_space { PS_GENERIC, PS_GLOBAL, PS_SHARED, PS_CONST, PS_LOCAL, PS_PARAM };

struct ptx_var {
    const char *name;
    enum ptx_space space;
    enum ptx_type type;
    uint64_t bytes;
    unsigned align;
    bool external;    /* extern .shared x[]: dynamic shared memory */
    const char *init; /* text after '=', or NULL */
    size_t init_len;
    int line;
    uint64_t offset; /* shared, local, param: where it was put */
};

enum opnd_kind {
    OPND_NONE,
    OPND_REG,
    OPND_INT,
    OPND_F32,
    OPND_F64,
    OPND_SREG,
    OPND_SYM,
    OPND_ADDR,
    OPND_VEC,
    OPND_LABEL,
    OPND_SINK
};

struct opnd {
    enum opnd_kind kind;
    int reg;                   /* REG; ADDR base register or -1 */
    int reg2;                  /* the q of p|q, else -1 */
    bool not ;                 /* !p */
    uint64_t bits;             /* INT, F32, F64 */
    const char *name;          /* SYM, SREG, LABEL; ADDR base symbol */
    enum ptx_sreg sreg;        /* SREG */
    const struct ptx_var *var; /* what SYM or ADDR name, when it is a variable */
    int64_t off;               /* ADDR, SYM */
    struct opnd *list;         /* VEC */
    int count;
    int target; /* LABEL: insn index */
};

/* m16n8k16; k is 0 in m8n8. */
struct ptx_shape {
    int m, n, k;
};

/* Of one instruction; a wgmma has up to 128 sums and a few more registers. */
enum { MAX_MODS = 16, MAX_INSN_REGS = 160 };

struct insn {
    enum ptx_op op;
    uint16_t mods[MAX_MODS]; /* enum ptx_mod, in the order of the text */
    int mod_count;
    struct ptx_shape shape;    /* of MOD_SHAPE, when it is among them */
    enum ptx_type type, type2; /* last type, and the one before it */
    int pred;                  /* guard register or -1 */
    bool pred_not;
    bool unfenced; /* a wgmma that no wgmma.fence can have come before: wgmma_in_flight.c */
    struct opnd *args;
    int arg_count;
    int line;         /* in the PTX text */
    int loc;          /* index into module.locs, -1 unknown */
    const char *text; /* the statement, for messages */
    int text_len;
};

struct ptx_loc {
    int file, line, column;
    int inlined_at; /* index of the caller's loc, or -1 */
};

struct ptx_function {
    const char *name;
    bool entry, defined, taken;    /* taken: its address, as far as module.taken_known */
    int levels;                    /* of itself that fit; 0: not counted yet */
    size_t header, body, body_end; /* offsets of "(" or "{" and the matching "}" */
    int header_line, body_line;
    unsigned max_threads, req_threads[3];
};

struct ptx_module {
    struct text text;
    struct arena *a;
    struct ptx_words words;
    struct strmap functions; /* name -> index */
    struct ptx_function *fn;
    int fn_count, fn_cap;
    bool taken_known;
    struct strmap vars;
    struct ptx_var **var;
    int var_count, var_cap;
    const char **files; /* by number; NULL where none */
    int file_count;
    struct ptx_loc *locs;
    int loc_count, loc_cap;
};

struct ptx_kernel {
    const struct ptx_function *fn;
    struct ptx_module *m;
    struct ptx_var **params;
    int param_count;
    uint64_t param_bytes;
    enum ptx_type *reg_type;
    const char **reg_name;
    int reg_count, reg_cap;
    int carry; /* the register that holds CC.CF, when has_carry */
    bool has_carry;
    struct insn *insn;
    int insn_count, insn_cap;
    struct ptx_var **locals; /* .local and .shared declared in bodies */
    int local_count, local_cap;
};

bool ptx_module_read(struct text text, struct arena *a, struct ptx_module *out, struct error *err);
/* What stands for the address of a function; 0: there is none of that name. */
uint64_t ptx_function_id(const struct ptx_module *m, const char *name, size_t len);
bool ptx_kernel_read(struct ptx_module *m, const char *name, struct arena *a,
                     struct ptx_kernel *out, struct error *err);

/* ptx_insn.c: questions about one instruction */
bool insn_has_mod(const struct insn *in, enum ptx_mod mod);
bool insn_has_list(const struct insn *in, const uint16_t *mods); /* one of them; ends with 0 */
#define insn_has_any(in, ...) insn_has_list(in, (const uint16_t[]){__VA_ARGS__, MOD_NONE})
bool insn_shared(const struct insn *in);          /* names the block's own shared memory */
enum ptx_space insn_space(const struct insn *in); /* the memory its modifiers name */
bool insn_is(const struct insn *in, enum ptx_trait trait);
/* A call on the device for the whole warp, not arithmetic that is written in place. */
bool insn_is_call(const struct insn *in);
/* Its first operand is read, not written. */
bool insn_writes_nothing(const struct insn *in);
/* The operand with the threads that take part in a collective of a warp; -1: it has none. */
int insn_members(const struct insn *in);
/* Appends the registers an operand names; out may be NULL to count them. */
void operand_regs(const struct opnd *o, int *out, int *n);
/* ".global.f32" */
void insn_mods_text(const struct insn *in, struct buf *out);
/* "add.rn.f32" as opcode, modifiers and types; false: too many modifiers. */
bool insn_words_read(const struct ptx_words *w, const char *s, size_t len, struct insn *in);
/* The text of the first MOD_UNKNOWN, for a message. */
const char *insn_unknown_mod(const struct insn *in, const struct ptx_words *w, struct arena *a);
/* Modifiers again as types: after a change of them. */
void insn_types_set(struct insn *in);

/* "demo.cu:12 ptx line 40": the user's line first. In the arena. */
char *ptx_where(const struct ptx_module *m, const struct insn *in, struct arena *a);

/* Grows an arena array so that index `count` fits. */
#define GROW(a, array, count, cap)                                                                 \
    do {                                                                                           \
        if ((count) >= (cap)) {                                                                    \
            int grown_ = (cap) ? (cap)*2 : 16;                                                     \
            void *more_ = arena_array((a), (size_t)grown_, sizeof *(array));                       \
            if (count)                                                                             \
                memcpy(more_, (array), (size_t)(count) * sizeof *(array));                         \
            (array) = more_;                                                                       \
            (cap) = grown_;                                                                        \
        }                                                                                          \
    } while (0)

#endif
