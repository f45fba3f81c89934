/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner.h - run a candidate's plan once and record its requests.
 *
 *     request line -> planner_load() -> planner_run(): the plan's PTX, interpreted
 *                  -> planner_answer() -> answer line
 *
 * No code of the candidate runs in this process: plan_machine.c interprets its PTX and checks every
 * access. Its requests arrive as plan_call requests, which planner_calls.c copies out of the plan's
 * memory and planner_api.c checks.
 *
 * Invariants
 * 1. Tensor and workspace addresses are symbols in a range that no memory of
 *    the plan and no scalar uses: buffer number times PLANNER_SLOT_BYTES from
 *    PLANNER_BASE. Touching one ends the plan.
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
#define PLANNER_IMAGE_BASE UINT64_C(0x10000000)

enum {
    PLANNER_MAX_TENSORS = 512,    /* inputs, or outputs */
    PLANNER_MAX_WORKSPACES = 512, /* as in export.h */
    PLANNER_MAX_DIMS = 8,
    PLANNER_MAX_OPS = 4096,
    PLANNER_MAX_MAPS = 1024,
    PLANNER_MAX_TEXT = 512,
    PLANNER_SLOTS = 2 * PLANNER_MAX_TENSORS + PLANNER_MAX_WORKSPACES,
};

struct planner {
    struct arena *arena;
    struct cutegen_call call;
    struct cutegen_tensor in[PLANNER_MAX_TENSORS], out[PLANNER_MAX_TENSORS];
    struct cutegen_scalar scalars[PLANNER_MAX_TENSORS];
    int64_t bytes[PLANNER_SLOTS]; /* size of the buffer in each slot; -1: none */
    int workspace_count;
    uint64_t arg_bytes; /* of all launches */
    uint64_t max_steps; /* of the plan; 0: PLAN_MAX_STEPS */
    json_t *ops, *maps, *workspace;
    const char *error;      /* NULL: none so far */
    const char *error_kind; /* "plan", or "launch": the device would reject it */
    const char *error_advice;
    int error_line;
};

/* planner_api.c. Requests return 0 (workspace: the address), or note an error. */
bool planner_load(struct planner *p, const json_t *request, struct error *err);
int planner_launch(struct planner *p, const struct cutegen_launch *launch);
int planner_clear(struct planner *p, int line, uint64_t address, int value, int64_t bytes);
uint64_t planner_workspace(struct planner *p, int line, int64_t bytes);
int planner_map(struct planner *p, int line, const struct cutegen_map_spec *given,
                struct cutegen_map *out);
int planner_fail(struct planner *p, int line, const char *text);
void planner_stop(struct planner *p, int line, const char *text, const char *advice);
/* The answer line's value; a new reference. */
json_t *planner_answer(struct planner *p, int returned);
void planner_release(struct planner *p);

/* planner_calls.c: interprets the plan; afterwards its requests and errors are in *p. */
int planner_run(struct planner *p, struct text ptx);

/* planner_confine.c: resource limits for this process, and a seccomp filter if the kernel supports
 * it. */
bool confine_limits(struct error *err);
void confine_calls(void);

#endif
