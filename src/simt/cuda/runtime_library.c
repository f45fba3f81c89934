/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_library.c - runtime calls: libraries, which are modules that a program loads itself.
 *
 * A cudaLibrary_t is the driver's library and a cudaKernel_t its kernel: launches take both kinds
 * of kernels.
 */
#include "simt/cuda/driver.h"
#include "simt/cuda/runtime.h"

API int cudaLibraryLoadData(void **out, const void *code, int *jit, void **jit_values,
                            unsigned jit_count, int *options, void **values, unsigned count)
{
    return runtime_result(
        cuLibraryLoadData(out, code, jit, jit_values, jit_count, options, values, count));
}

API int cudaLibraryLoadFromFile(void **out, const char *path, int *jit, void **jit_values,
                                unsigned jit_count, int *options, void **values, unsigned count)
{
    return runtime_result(
        cuLibraryLoadFromFile(out, path, jit, jit_values, jit_count, options, values, count));
}

API int cudaLibraryUnload(void *library)
{
    return runtime_result(cuLibraryUnload(library));
}

API int cudaLibraryGetKernel(void **out, void *library, const char *name)
{
    return runtime_result(cuLibraryGetKernel(out, library, name));
}

API int cudaLibraryGetGlobal(uint64_t *at, size_t *bytes, void *library, const char *name)
{
    return runtime_result(cuLibraryGetGlobal(at, bytes, library, name));
}

API int cudaLibraryGetManaged(uint64_t *at, size_t *bytes, void *library, const char *name)
{
    return runtime_result(cuLibraryGetManaged(at, bytes, library, name));
}

API int cudaLibraryGetKernelCount(unsigned *count, void *library)
{
    return runtime_result(cuLibraryGetKernelCount(count, library));
}

API int cudaLibraryEnumerateKernels(void **out, unsigned count, void *library)
{
    return runtime_result(cuLibraryEnumerateKernels(out, count, library));
}

API int cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device)
{
    (void)device;
    return cudaFuncSetAttribute(kernel, attribute, value);
}
