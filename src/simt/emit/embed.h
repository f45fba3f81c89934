/* SPDX-License-Identifier: Apache-2.0 */
/* embed.h - the text of abi.h and of vec*.h, made at build time by embed.c. */
#ifndef SIMT_EMBED_H
#define SIMT_EMBED_H

extern const char simt_abi_text[];
extern const char simt_vec_text[];
extern const char simt_vec_math_text[];
extern const char simt_vec_lanes_text[];
extern const char simt_vec_waits_text[];

/* In a translation, behind what it has of these texts. */
#define SIMT_OWN_TEXT "/* ---- the kernels ---- */\n"

#endif
