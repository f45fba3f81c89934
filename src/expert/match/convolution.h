/* SPDX-License-Identifier: Apache-2.0 */
/* convolution.h - which nodes are convolutions; match.h has the matcher. */
#ifndef EXPERT_CONVOLUTION_H
#define EXPERT_CONVOLUTION_H

#include "expert/graph/graph.h"

bool conv_is(const struct node *n);

#endif
