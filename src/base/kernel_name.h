/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_name.h - is this text the name of a kernel and nothing else?
 *
 * Names come from candidates and reach the compiler as expressions:
 * "gemm<128, 64, (1 + 2)>", "ns::swish<float>". A name that could end the expression around it, or
 * begin a directive or a comment, is refused.
 */
#ifndef BASE_KERNEL_NAME_H
#define BASE_KERNEL_NAME_H

#include <stdbool.h>

enum { KERNEL_NAME_MAX = 1024 };

/* False: *why completes the sentence "the name '...' ...", as in "is too long". */
bool kernel_name_ok(const char *name, const char **why);

#endif
