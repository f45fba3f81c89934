/*
 * planner.h - run a candidate's plan once and write down what it asks for.
 *
 *     request line -> planner_load() -> confine -> dlopen -> cutegen_plan()
 *                  -> planner_answer() -> answer line
 *
 * The plan runs in this process and may do anything to it; that is why the
 * process is small, confined (planner_confine.c) and believed in nothing: its
 * answer is data that the runner checks again.
 *
 * Invariants
 * 1. Tensor and workspace addresses are symbols in a range that no mapping and
 *    no scalar uses: buffer number times PLANNER_SLOT_BYTES from
 *    PLANNER_BASE. They are not canonical addresses, so touching one faults.
 * 2. The first error wins; later requests of the plan are ignored.
 * 3. An answer never names a place outside a buffer.
 */
#ifndef RUNNER_PLANNER_H
#define RUNNER_PLANNER_H

#include "base/error.h"
#include "base/mem.h"

#include <cutegen/kernel.h>
#include <jansson.h>

#define PLANNER_BASE       UINT64_C(0x00c0000000000000)
#define PLANNER_SLOT_BYTES (UINT64_C(1) << 42)

enum {
    PLANNER_MAX_TENSORS = 64,    /* inputs, or outputs */
    PLANNER_MAX_WORKSPACES = 64, /* as in export.h */
    PLANNER_MAX_DIMS = 8,
    PLANNER_MAX_OPS = 1024,
    PLANNER_MAX_MAPS = 256,
    PLANNER_SLOTS = 2 * PLANNER_MAX_TENSORS + PLANNER_MAX_WORKSPACES,
};

struct planner {
    struct arena *arena;
    struct cutegen_call call;
    struct cutegen_tensor in[PLANNER_MAX_TENSORS], out[PLANNER_MAX_TENSORS];
    struct cutegen_scalar scalars[PLANNER_MAX_TENSORS];
    int64_t bytes[PLANNER_SLOTS]; /* of the buffer in each slot; -1: none */
    int workspace_count;
    json_t *ops, *maps, *workspace;
    const char *error;      /* NULL: none so far */
    const char *error_kind; /* "plan", or "launch": the device would reject it */
    int error_line;
};

/* planner_api.c */
bool planner_load(struct planner *p, const json_t *request, struct error *err);
json_t *planner_answer(struct planner *p, int returned);

/* planner_confine.c: limits and system calls, from wide to narrow. */
bool confine_limits(struct error *err);
bool confine_loading(int answer_fd, struct error *err); /* read-only opens are left, for dlopen */
bool confine_running(int answer_fd, struct error *err); /* memory, the answer and the exit */

#endif
