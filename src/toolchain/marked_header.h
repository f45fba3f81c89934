/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marked_header.h - CuTe's header of pointers, with a mark in the code of every access through it.
 *
 * For ptx_cute.h, when line information is not enough: the compiler moves address arithmetic out of
 * loops together with its lines. An access that is marked stays marked. The mark is a random word
 * that no candidate knows.
 */
#ifndef TOOLCHAIN_MARKED_HEADER_H
#define TOOLCHAIN_MARKED_HEADER_H

#include "base/mem.h"

#include <jansson.h>

#define MARKED_HEADER_NAME "cute/pointer.hpp"

/* Read from the folder of `includes` that has it; NULL: none has it, or it differs from known
 * versions. */
char *marked_header(const json_t *includes, const char *mark, struct arena *a);

#endif
