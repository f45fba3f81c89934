/*
 * lease.h - one candidate at a time on a GPU.
 *
 * Two processes that use a GPU at once spoil each other's timings. Whoever
 * tests, times or profiles holds the device's lease meanwhile: a lock on a
 * file of this user, dropped by the kernel when the process dies. simt needs
 * none: its times are modelled.
 */
#ifndef EVAL_LEASE_H
#define EVAL_LEASE_H

#include "base/error.h"
#include "model.h"

/* Waits for its turn; *lease is to be given back. On simt it is nothing. */
bool lease_take(const struct device *device, int *lease, struct error *err);
void lease_give_back(int lease);

#endif
