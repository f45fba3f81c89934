/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag.h - boil a compiler's log down to what can be acted on.
 *
 * Reads the logs of NVRTC, nvcc, ptxas, gcc, clang and tcc. The verdict gets
 * the first real error with the user's own line (through CuTe's
 * instantiations), what the assertion or overload noise means, and the shapes
 * in CuTe's notation; a few further errors follow as findings.
 */
#ifndef TOOLCHAIN_DIAG_H
#define TOOLCHAIN_DIAG_H

#include "model.h"

enum { DIAG_DETAIL_MAX = 1500 }; /* bytes of verdict.detail */

/* `name` is what the user calls the file. Fills a COMPILE_ERROR. */
void diag_compile_error(struct text log, struct text source, const char *name, struct arena *a,
                        struct verdict *out);

/* Shows the user's own file name where the compiler was given another. */
void diag_rename(struct verdict *v, const char *from, const char *to, struct arena *a);

/* A C++ type in CuTe's own notation: "cute::tuple<cute::C<4>, int>" -> "(_4,int)". */
char *diag_type(struct text type, struct arena *a);

/* Line `number` (from 1) of the source without its indent; "" when there is none. */
char *diag_source_line(struct text source, int number, struct arena *a);

#endif
