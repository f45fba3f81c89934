/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust.h - may foreign code run on this machine?
 *
 * A ModelNew is foreign native code. Where neither Landlock nor namespaces protect files from it,
 * it runs only with --trust. Candidates in .cu files have no code outside the GPU or its
 * simulation, so this check does not concern them.
 */
#ifndef EVAL_TRUST_H
#define EVAL_TRUST_H

#include "base/error.h"
#include "confine/confine.h"

/* false: err says which layers are missing and what is open without them. */
bool trust_allows(const struct confine_report *layers, bool trusted, struct error *err);
/* The same for this machine, whose layers are probed. */
bool trust_here(bool trusted, struct error *err);

#endif
