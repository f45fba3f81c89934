/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_check.h - check compiled code for what the source could hide.
 *
 * Looks at PTX before anything runs:
 * - launches: every argument of a launch list against the kernel's own
 *   parameters (count, size, float against integer) and its launch bounds;
 * - state: no kernel writes a module variable (it would outlive the launch),
 *   none calls what is not in the module (printf, malloc), none reads a launch counter (%gridid) or
 *   the time (%globaltimer, %clock64);
 * - module: outside functions there are only the parts of a module of kernels. For PTX that foreign
 *   code wrote as a whole (ptx_module.c).
 * All return true if nothing is wrong; else the verdict has the user's line.
 */
#ifndef TOOLCHAIN_PTX_CHECK_H
#define TOOLCHAIN_PTX_CHECK_H

#include "model.h"

struct ptx_subject {
    struct text ptx, source;
    const char *name; /* the user's name for the file */
};

bool ptx_check_launches(const struct ptx_subject *s, const json_t *names, const json_t *launches,
                        struct arena *a, struct verdict *out);
bool ptx_check_state(const struct ptx_subject *s, struct arena *a, struct verdict *out);
bool ptx_check_module(const struct ptx_subject *s, struct arena *a, struct verdict *out);

#endif
