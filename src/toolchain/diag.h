/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag.h - reduce a compiler's log to actionable errors.
 *
 * Reads the logs of NVRTC, nvcc, ptxas, gcc, clang and tcc. The verdict gets
 * the first real error with the user's own line (through CuTe's
 * instantiations), the meaning of assertions and overload errors, and the shapes in CuTe's
 * notation; a few further errors follow as findings.
 */
#ifndef TOOLCHAIN_DIAG_H
#define TOOLCHAIN_DIAG_H

#include "model.h"

enum { DIAG_DETAIL_MAX = 1500 }; /* bytes of verdict.detail */

/* `name` is the user's name for the file. Fills a COMPILE_ERROR. */
void diag_compile_error(struct text log, struct text source, const char *name, struct arena *a,
                        struct verdict *out);

/* Replaces the compiler's file name by the user's. */
void diag_rename(struct verdict *v, const char *from, const char *to, struct arena *a);

/* A C++ type in CuTe's own notation: "cute::tuple<cute::C<4>, int>" -> "(_4,int)". */
char *diag_type(struct text type, struct arena *a);

/* Line `number` (from 1) of the source without its indent; "" when there is none. */
char *diag_source_line(struct text source, int number, struct arena *a);

#endif
