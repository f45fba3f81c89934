/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h - check a candidate's tokens before anything is built or run.
 *
 * The gate reads tokens, not text, so comments, strings and line splices hide
 * nothing. It is only the first check: plans also run confined, and ptx_check_state() checks what
 * the compiler produced.
 *
 *     if (gate_refuses(source, "my.cu", a, &verdict)) ...      verdict.kind is REFUSED
 *
 * To add a rule: a check in gate.c (or gate_cute.c) that calls gate_add(), a
 * row in tests/toolchain/test_gate.c that it refuses and one that it does not,
 * a line in docs/kernel-abi.md.
 */
#ifndef TOOLCHAIN_GATE_H
#define TOOLCHAIN_GATE_H

#include "model.h"
#include "toolchain/source_halves.h"

enum { GATE_SOURCE_MAX = 2 << 20 };

/* The required language: CuTe that is really used, or CUDA C++ without CuTe. */
enum gate_target { GATE_CUTE, GATE_CUDA };
bool gate_refuses_as(enum gate_target target, struct text source, const char *name, struct arena *a,
                     struct verdict *out);
/* As GATE_CUTE. */
bool gate_refuses(struct text source, const char *name, struct arena *a, struct verdict *out);

/* ---- between the gate's files ---------------------------------------------- */

struct gate {
    struct text source;
    const char *name;
    struct tokens t;
    struct halves h;
    struct arena *a;
    struct verdict *out;
};

void gate_add(struct gate *g, int line, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Which halves see token `i`. */
int gate_sees(const struct gate *g, size_t i);
/* CuTe is included and its tensors or layouts do the indexing. */
void gate_check_cute(struct gate *g);
/* There is a kernel, and no CuTe in it. */
void gate_check_cuda(struct gate *g);

#endif
