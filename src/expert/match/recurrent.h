/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent.h - recurrent layers as described by oracle/recurrent.py, for the partition. */
#ifndef EXPERT_RECURRENT_H
#define EXPERT_RECURRENT_H

#include "expert/match/match.h"

bool recurrent_is(const struct node *n);
/* An operand that must be computed or copied first; NULL: all lie as the kernel reads them. */
const struct node *recurrent_unreadable(const struct graph *g, const struct node *n);

#endif
