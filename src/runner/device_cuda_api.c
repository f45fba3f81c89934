/* SPDX-License-Identifier: Apache-2.0 */
/* device_cuda_api.c - finds the driver's entry points; see cuda_api.h. */
#include "base/mem.h"
#include "runner/cuda_api.h"

#include <dlfcn.h>
#include <string.h>

/* The driver expects these layouts. */
_Static_assert(sizeof(struct cuda_launch_attribute) == 72, "CUlaunchAttribute");
_Static_assert(offsetof(struct cuda_launch_attribute, value) == 8, "CUlaunchAttribute.value");
_Static_assert(offsetof(struct cuda_launch_config, stream) == 32, "CUlaunchConfig.hStream");
_Static_assert(offsetof(struct cuda_launch_config, attribute_count) == 48,
               "CUlaunchConfig.numAttrs");
_Static_assert(sizeof(struct cuda_tensor_map) == 128, "CUtensorMap");

struct driver_entry {
    const char *symbol;
    size_t offset; /* offset of the pointer in struct cuda_api */
    bool optional;
};

bool cuda_api_open(struct cuda_api *out, struct error *err)
{
    static const struct driver_entry entries[] = {
#define REQUIRED(name, args, symbol) {symbol, offsetof(struct cuda_api, name), false},
#define OPTIONAL(name, args, symbol) {symbol, offsetof(struct cuda_api, name), true},
        CUDA_CALLS(REQUIRED) CUDA_OPTIONAL_CALLS(OPTIONAL)
#undef REQUIRED
#undef OPTIONAL
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    memset(out, 0, sizeof *out);
    if (!library) {
        error_set(err, ERROR_MACHINE, "no NVIDIA driver: %s", dlerror());
        return error_hint(err, "use --device simt, or install the NVIDIA driver");
    }
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        void *symbol = dlsym(library, entries[i].symbol);

        if (!symbol && !entries[i].optional) {
            error_set(err, ERROR_MACHINE, "the NVIDIA driver has no %s", entries[i].symbol);
            return error_hint(err, "a driver for CUDA 12 or later is needed");
        }
        /* POSIX lets a data pointer carry a function's address. */
        memcpy((char *)out + entries[i].offset, &symbol, sizeof symbol);
    }
    return true;
}
