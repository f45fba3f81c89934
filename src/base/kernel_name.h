/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_name.h - is a text the name of a kernel, and nothing more?
 *
 * Names come from candidates and reach the compiler as expressions:
 * "gemm<128, 64, (1 + 2)>", "ns::swish<float>". One that could end the
 * expression it stands in, or begin a directive or a comment, is refused.
 */
#ifndef BASE_KERNEL_NAME_H
#define BASE_KERNEL_NAME_H

#include <stdbool.h>

enum { KERNEL_NAME_MAX = 1024 };

/* False: *why says what is wrong, as in "the name '...' has no '#'". */
bool kernel_name_ok(const char *name, const char **why);

#endif
