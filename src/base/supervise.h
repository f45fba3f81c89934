/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise.h - the process between us and a program (private to base/proc.c).
 *
 * supervise() runs in a forked process and never returns. It starts the
 * program, reaps everything the program starts, enforces time and memory, and
 * ends only when nothing of it is left.
 */
#ifndef BASE_SUPERVISE_H
#define BASE_SUPERVISE_H

#include "base/proc.h"

struct supervise_plan {
    const struct proc_spec *spec;
    const char *program; /* resolved path */
    char **environment;
    const char *tmp;  /* its own folder, removed at the end; NULL: none */
    int in, out, err; /* become 0, 1, 2 of the program */
    int life;         /* read end; EOF: cutegen died or ends the program */
    int report;       /* write end: one struct supervise_report */
    /* In the new process, confined, in place of exec: it continues as a copy of this one
     * (confine/copier.h). NULL: exec. */
    void (*born)(void *ctx);
    void *born_ctx;
};

struct supervise_report {
    int started; /* pid, or 0: exec failed, `code` is errno, `step` says where */
    enum proc_end end;
    int code, step;
    char why[160]; /* from a step that can say more than errno */
    int wall_ms, cpu_ms;
    uint64_t peak_resident_bytes;
    int left; /* pid of a process that did not die; 0: all did */
};

/* Two reports are written: one when the program started (or could not be), one at the end. */
_Noreturn void supervise(const struct supervise_plan *plan);

#endif
