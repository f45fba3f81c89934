/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_gpu.h - (private to probe*.c) ask libraries of the driver and of CUDA in a child process.
 *
 * A driver may hang or crash: it is loaded in a forked child that writes lines
 * and ends. Fork it while the process still has one thread.
 *
 *     pid = probe_fork(probe_gpus, NULL, &fd);
 *     text = probe_collect(pid, fd, deadline_ms, a);        what it wrote until then
 */
#ifndef TOOLCHAIN_PROBE_GPU_H
#define TOOLCHAIN_PROBE_GPU_H

#include "base/mem.h"

#include <stdint.h>
#include <sys/types.h>

typedef void probe_body(int fd, const char *arg);

pid_t probe_fork(probe_body *body, const char *arg, int *fd); /* -1: no process */
/* Reads until the child ends or clock_ms() reaches `until_ms`, then ends it. */
struct text probe_collect(pid_t pid, int fd, int64_t until_ms, struct arena *a);

/* Writes "nvml NAME|CAPABILITY|BYTES" and "cuda NAME|CAPABILITY|BYTES" lines, or "no ...". */
void probe_gpus(int fd, const char *unused);
/* Opens the driver in confinement, with the folders of LD_LIBRARY_PATH in `libraries` (may be
 * NULL): "opened", "closed WHY" or "no libcuda". */
void probe_confined_gpu(int fd, const char *libraries);
/* Writes "version MAJOR.MINOR", or "broken WHY". */
void probe_nvrtc(int fd, const char *library);

#endif
