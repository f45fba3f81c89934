/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_body.h - inside of the reader of kernels: what its files share.
 *
 * ptx_body.c reads declarations and statements, ptx_operand.c looks names up and reads operands,
 * ptx_inline.c puts callees in place.
 */
#ifndef SIMT_PTX_BODY_H
#define SIMT_PTX_BODY_H

#include "simt/ptx/ptx_module.h"

enum {
    MAX_CALL_DEPTH = 24,
    MAX_CALLS = 50000, /* read, each with its callee's text */
    MAX_INSNS = 2000000,
    MAX_PARAM_BYTES = 32764,
    MAX_OPERANDS = 160,
    MAX_VECTORS = 4096
};

struct family {
    enum ptx_type type;
    uint64_t count;
};

/* A .param variable of a call: its pieces are registers. */
struct piece_set {
    struct piece {
        int64_t off;
        unsigned bytes;
        int reg;
    } * piece;
    int count, cap;
};

enum name_kind { NAME_REG, NAME_FAMILY, NAME_VAR, NAME_PIECES, NAME_VECTOR };

struct name {
    enum name_kind kind;
    int reg;   /* VECTOR: the first; the others follow */
    int width; /* VECTOR */
    struct family family;
    struct ptx_var *var;
    struct piece_set *pieces;
};

struct ptx_scope {
    int parent;           /* -1: a function's own */
    struct strmap names;  /* -> reader.name index */
    struct strmap labels; /* -> insn index */
};

struct fixup {
    int insn, scope;
};

struct ptx_reader {
    struct ptx_module *m;
    struct ptx_kernel *k;
    struct arena *a;
    struct ptx_lexer lx;
    struct ptx_scope *scope;
    int scope_count, scope_cap, at;
    struct name *name;
    int name_count, name_cap;
    struct fixup *fix;
    int fix_count, fix_cap;
    struct strmap locs;
    int loc, called_at; /* called_at: where the function that is being read was called */
    const struct ptx_function *calls[MAX_CALL_DEPTH];
    int depth, inlined; /* inlined: calls, in all */
};

/* ptx_operand.c */
int ptx_scope_push(struct ptx_reader *r, int parent);
struct name *ptx_name_add(struct ptx_reader *r, const char *s, size_t len, struct name n);
struct name *ptx_name_find(struct ptx_reader *r, const char *s, size_t len);
/* Arithmetic on two f32 as instructions on one; how many, 0: not a known form. */
enum { SPLIT_MAX = 6 };
int ptx_split_f32x2(struct ptx_reader *r, const struct insn *in, struct insn out[SPLIT_MAX]);
int ptx_reg_new(struct ptx_reader *r, const char *name, enum ptx_type type);
bool ptx_offset_read(struct ptx_reader *r, int64_t *off, struct error *err);
bool ptx_operand_read(struct ptx_reader *r, struct opnd *o, int depth, struct error *err);

/* ptx_inline.c */
struct insn *ptx_insn_add(struct ptx_reader *r, int line);
/* It names no more registers than the passes have room for. */
bool ptx_regs_fit(const struct insn *in, struct error *err);
/* An access to a .param variable of a call, as moves of its pieces. */
bool ptx_lower_param(struct ptx_reader *r, struct insn in, struct piece_set *p, struct error *err);
bool ptx_lower_call(struct ptx_reader *r, struct insn in, struct error *err);
/* What a call takes and gives: lists, or NULL. */
struct call_sides {
    struct opnd *ret, *args;
};
bool ptx_inline_call(struct ptx_reader *r, struct insn in, const struct ptx_function *f,
                     struct call_sides sides, struct error *err);

/* ptx_pointer.c */
bool ptx_lower_pointer(struct ptx_reader *r, struct insn in, int reg, struct call_sides sides,
                       struct error *err);
/* Where a call cannot be followed. */
void ptx_trap_add(struct ptx_reader *r, int line, enum ptx_op op);
/* It is being read already, so often that no further level is. */
bool ptx_too_deep(struct ptx_reader *r, const struct ptx_function *f);

/* ptx_body.c */
bool ptx_body_read(struct ptx_reader *r, const struct ptx_function *f, struct error *err);

#endif
