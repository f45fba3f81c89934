/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_module.h - what the module reader and the body reader share. */
#ifndef SIMT_PTX_MODULE_H
#define SIMT_PTX_MODULE_H

#include "simt/ptx/ptx.h"
#include "simt/ptx/ptx_lex.h"

/* Says what was expected and what was found; returns false. */
bool ptx_syntax(struct ptx_token t, const char *wanted, struct error *err);
bool ptx_expect(struct ptx_lexer *lx, char mark, struct error *err);
bool ptx_small_int(struct ptx_lexer *lx, uint64_t limit, uint64_t *out, struct error *err);
/* A variable's declaration from its alignment on; space is set by the caller. */
bool ptx_var_read(struct ptx_lexer *lx, struct arena *a, struct ptx_var *v, struct error *err);
/* An instruction of type b128 as one or two of b64; how many, 0: it has none. */
int ptx_split_wide(const struct insn *in, struct arena *a, struct insn out[2]);

#endif
