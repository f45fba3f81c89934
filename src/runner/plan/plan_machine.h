/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_machine.h - interpret a plan's code as one thread, with every
 * access checked.
 *
 * The plan's addresses are meaningful only here: each load and store must be inside one region, or
 * the run ends. The result depends only on code and input, and the run ends after `max_steps`
 * instructions whatever the machine's speed.
 *
 *     struct plan_machine m = {.code = &code, .call = on_call, .state = ...};
 *     plan_machine_region(&m, ...)            memory of the caller's
 *     plan_machine_run(&m, argument, err)     false: err says why, m.line where
 *     plan_machine_release(&m)                also after errors
 */
#ifndef RUNNER_PLAN_MACHINE_H
#define RUNNER_PLAN_MACHINE_H

#include "runner/plan/plan_code.h"

enum { PLAN_MAX_DEPTH = 256, PLAN_MAX_REGIONS = 4, PLAN_REG_FILE = 1 << 18 };
#define PLAN_MAX_STEPS UINT64_C(20000000)

struct plan_region {
    uint64_t base, bytes;
    unsigned char *host;
    bool writable;
};

struct plan_machine {
    const struct plan_code *code;
    /* Executes a call to the planner; false ends the run with its error. */
    bool (*call)(struct plan_machine *m, enum plan_call which, const uint64_t *args,
                 uint64_t *result, struct error *err);
    void *state; /* of `call` */
    uint64_t max_steps;

    uint64_t steps;
    int line; /* after an error: the candidate's line, 0 when there is none */
    struct plan_region region[PLAN_MAX_REGIONS];
    int region_count;
    uint64_t *regs;
    unsigned char *stack;
    struct plan_frame *frame;
    int depth;
};

void plan_machine_region(struct plan_machine *m, struct plan_region region);
bool plan_machine_run(struct plan_machine *m, uint64_t argument, struct error *err);
void plan_machine_release(struct plan_machine *m);

/* For `call`: copy between the plan's memory and ours. */
bool plan_machine_read(const struct plan_machine *m, uint64_t address, void *to, size_t bytes,
                       struct error *err);
bool plan_machine_write(const struct plan_machine *m, uint64_t address, const void *from,
                        size_t bytes, struct error *err);
/* A text of at most `limit` bytes; a longer one is truncated and *whole is false. */
bool plan_machine_text(const struct plan_machine *m, uint64_t address, size_t limit,
                       struct arena *a, char **out, bool *whole, struct error *err);

#endif
