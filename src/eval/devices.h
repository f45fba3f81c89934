/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices.h - find the device that kernels run on, and describe it.
 *
 *     devices_find("auto", "H200", "80", a, &device, err)
 *
 * "auto" is the first GPU, or simt if there is none. A GPU is described by a
 * runner process of its own: a driver may hang or crash. "for:H200" is such a GPU in another
 * machine, from the table of peaks.h.
 */
#ifndef EVAL_DEVICES_H
#define EVAL_DEVICES_H

#include "base/error.h"
#include "model.h"

/* `models` is the GPU whose time simt models, `simt_arch` what its code is built for ("80", "90a",
 * "100a"; NULL: "80"). Strings are in the arena. */
bool devices_find(const char *name, const char *models, const char *simt_arch, struct arena *a,
                  struct device *out, struct error *err);

#endif
