/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_slots.h - the interface between rows_slots.c, which fills the slots that all recipes for row
 * reductions share, and rows_recipe.c, which picks a recipe and fills its own slots.
 */
#ifndef EXPERT_ROWS_SLOTS_H
#define EXPERT_ROWS_SLOTS_H

#include "base/buf.h"
#include "expert/match/rows.h"

enum { ROWS_SM_REGISTERS = 65536 };

/* The context of an element, which decides how tensors and results are written. From COLUMN on, a
 * thread has several columns and results are arrays. */
enum place {
    PLAIN,
    VECTOR,
    REGISTER,
    SCALAR,
    PICK,
    SHARE,
    COLUMN,
    COLUMN_HELD,
    COLUMN_SCALAR,
    FOLD_SCALAR,
    PLACES
};

/* ---- rows_slots.c ---------------------------------------------------------- */

const struct axis *rows_along(const struct rows *q, int i, int mode);
const struct axis *rows_axis(const struct rows *q, int i, int mode);
int64_t rows_count(const struct rows *q);
int64_t rows_length(const struct rows *q);
int rows_vector_length(const struct rows *q);
/* Elements of the call's tensor before tensor i begins. */
int64_t rows_offset(const struct rows *q, int i);
bool rows_vectorisable(const struct rows *q, int vec);
/* Does it differ from row to row? */
bool rows_moves(const struct row_tensor *t);
/* Read more than once, and not the same for all rows? */
bool rows_kept(const struct row_tensor *t);
const char *rows_call(struct rows *q, const struct function *f, enum place place);
void rows_tensor(struct rows *q, struct scope *item, int i);
/* How often the kernels read tensor i, where pairs of passes are one; `held`: what is read again is
 * in registers. */
int rows_times_read(const struct rows *q, int i, bool held);
/* Notes what the kernels move. */
void rows_add_cost(const struct rows *q, bool held, int launches);
/* In how many loops each input is read. */
void rows_count_uses(struct rows *q);
/* Pointers of the tensors in `in`, as parameters and as arguments. */
void rows_pointers(struct rows *q, const bool *in, struct buf *params, struct buf *args);
void rows_signature(struct rows *q, const bool *in, struct buf *params, struct buf *args);
void rows_check(struct scope *s, const char *list, const char *condition, const char *text);
const char *rows_size_of(struct rows *q, const struct modes *modes, int mode);

/* ---- rows_recipe.c ---------------------------------------------------------- */

/* Picks the recipe by how the tensors lie and how many rows there are. */
bool rows_pick_recipe(struct rows *q, struct scope *s);
void rows_split_stage(struct rows *q, struct scope *item, int i);

/* ---- rows_columns.c --------------------------------------------------------- */

/* Do neighbouring rows lie together, and the elements of a row apart? */
bool rows_are_columns(const struct rows *q);
bool rows_form_columns(struct rows *q, struct scope *s);
void rows_column_layout(struct rows *q, struct scope *item, int i);
/* Where the parts of pass k begin, behind "parts", in a column reduction that is split. */
const char *rows_parts_at(struct rows *q, int k);

#endif
