/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder_limits.h - how much goes between cutegen and cutegen-builder in one line.
 *
 * An answer holds the log, the PTX and the cubin (as base64). Escaped at their worst they are
 * within BUILDER_ANSWER_LIMIT.
 */
#ifndef TOOLCHAIN_BUILDER_LIMITS_H
#define TOOLCHAIN_BUILDER_LIMITS_H

enum {
    BUILDER_SOURCE_LIMIT = 4 << 20,
    BUILDER_REQUEST_LIMIT = 8 << 20,
    BUILDER_LOG_LIMIT = 1 << 20,   /* what is longer is cut */
    BUILDER_CODE_LIMIT = 32 << 20, /* PTX and cubin, each; more is an error of the source */
    BUILDER_ANSWER_LIMIT = 256 << 20
};

#endif
