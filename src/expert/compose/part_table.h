/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_table.h - what a file of several parts says about them: base/parts.h reads it.
 *
 * One comment line per part at the start of the file: its recipe, operators, what it reads and
 * makes, the bytes that takes at least. In the plan, the number of the part whose launches follow.
 */
#ifndef EXPERT_PART_TABLE_H
#define EXPERT_PART_TABLE_H

#include "base/buf.h"
#include "expert/match/partition.h"

void part_table_put(const struct parts *p, struct arena *a, struct buf *out);
void part_table_put_mark(int part, struct buf *out);

#endif
