/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder_limits.h - limits on a line between cutegen and cutegen-builder.
 *
 * An answer holds the log, the PTX and the cubin (as base64). Even fully escaped they are within
 * BUILDER_ANSWER_LIMIT.
 */
#ifndef TOOLCHAIN_BUILDER_LIMITS_H
#define TOOLCHAIN_BUILDER_LIMITS_H

enum {
    BUILDER_SOURCE_LIMIT = 4 << 20,
    BUILDER_REQUEST_LIMIT = 8 << 20,
    BUILDER_LOG_LIMIT = 1 << 20,   /* longer ones are truncated */
    BUILDER_CODE_LIMIT = 32 << 20, /* PTX and cubin, each; a larger one is an error in the source */
    BUILDER_ANSWER_LIMIT = 256 << 20
};

#endif
