/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_opcode.h - the words of an instruction as numbers: opcodes, modifiers, types, special
 * registers, and the traits of opcodes. All of it comes from ptx_ops.def.
 *
 * The reader looks each word up once; after that no text is compared. A word that is not in the
 * table is OP_UNKNOWN, MOD_UNKNOWN or SREG_UNKNOWN, and the kernel is refused before any pass.
 */
#ifndef SIMT_PTX_OPCODE_H
#define SIMT_PTX_OPCODE_H

#include "simt/ptx/string_map.h"

#include <stdint.h>

enum ptx_type {
    PT_NONE,
#define TYPE(name, text, bytes) PT_##name,
#include "simt/ptx/ptx_ops.def"
    PT_COUNT
};

/* A type is the modifier of the same number. MOD_ is the end of a shorter list. */
enum ptx_mod {
    MOD_NONE,
    MOD_ = MOD_NONE,
#define TYPE(name, text, bytes) MOD_##name,
#define MOD(name, text)         MOD_##name,
#include "simt/ptx/ptx_ops.def"
    MOD_SHAPE, /* m16n8k16: the numbers are in the instruction */
    MOD_UNKNOWN,
    MOD_COUNT
};

enum ptx_op {
    OP_UNKNOWN,
#define OPCODE(name, text, cls, traits) OP_##name,
#include "simt/ptx/ptx_ops.def"
    OP_COUNT
};

enum ptx_sreg {
    SREG_UNKNOWN,
#define SREG(name, text, c_text) SREG_##name,
#include "simt/ptx/ptx_ops.def"
    SREG_COUNT
};

enum ptx_trait {
    TRAIT_ = 0,
    TRAIT_NO_RESULT = 1 << 0,       /* the first operand is read, not written */
    TRAIT_ACCUMULATES = 1 << 1,     /* the result is read too */
    TRAIT_VARIES = 1 << 2,          /* the result differs between lanes, whatever is read */
    TRAIT_UNIFORM = 1 << 3,         /* the result is the same for all lanes */
    TRAIT_ENDS_BLOCK = 1 << 4,      /* a branch, or the end of the kernel */
    TRAIT_DEVICE_CALL = 1 << 5,     /* the device does it, for all lanes at once */
    TRAIT_ACCESS = 1 << 6,          /* one access to memory at its address operand */
    TRAIT_POLLS = 1 << 7,           /* a loop with it may wait for other lanes */
    TRAIT_COLLECTIVE = 1 << 8,      /* waits for other lanes of its warp or block */
    TRAIT_COLLECTIVE_SYNC = 1 << 9, /* does so with .sync */
    TRAIT_READS_CARRY = 1 << 10,    /* the carry flag is an operand */
    TRAIT_INTERNAL = 1 << 11        /* made by the passes; not a word of PTX */
};

/* Lists of ptx_ops.def: LIST(MOD, (RN, FTZ)) is MOD_RN, MOD_FTZ, MOD_, MOD_. */
#define LIST(prefix, words)                LIST_OPEN(prefix, LIST_WORDS words)
#define LIST_WORDS(...)                    __VA_ARGS__
#define LIST_OPEN(prefix, ...)             LIST_FOUR(prefix, __VA_ARGS__, , , , )
#define LIST_FOUR(prefix, a, b, c, d, ...) prefix##_##a, prefix##_##b, prefix##_##c, prefix##_##d

enum ptx_type ptx_type_of(const char *name); /* PT_NONE when it is not a type */
const char *ptx_type_name(enum ptx_type t);
unsigned ptx_type_bytes(enum ptx_type t);

const char *ptx_op_name(enum ptx_op op);
const char *ptx_mod_name(enum ptx_mod mod);
bool ptx_op_is(enum ptx_op op, enum ptx_trait trait);

/* The type a modifier names, or PT_NONE. */
static inline enum ptx_type ptx_mod_type(enum ptx_mod mod)
{
    return (int)mod < PT_COUNT ? (enum ptx_type)mod : PT_NONE;
}

/* Text to numbers, for one translation. */
struct ptx_words {
    struct strmap op, mod, sreg;
};

struct ptx_words ptx_words_init(struct arena *a);
enum ptx_op ptx_op_find(const struct ptx_words *w, const char *s, size_t len);
enum ptx_mod ptx_mod_find(const struct ptx_words *w, const char *s, size_t len);
enum ptx_sreg ptx_sreg_find(const struct ptx_words *w, const char *s, size_t len);

#endif
