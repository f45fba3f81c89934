/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cutedsl_programs.c - part of the library of the CuTe DSL's exported kernels: loads their code.
 *
 * The objects contain machine code, which simt does not run. Where cutegen_code is set before a
 * kernel is loaded, that is loaded instead (PTX, to try the library on simt). On a GPU it stays
 * NULL. Linked with -Wl,--wrap=_cudaLibraryLoadData, a function of the DSL's runtime.
 */
#include <cuda_runtime_api.h>

const void *cutegen_code;

__typeof__(cudaLibraryLoadData) __real__cudaLibraryLoadData, __wrap__cudaLibraryLoadData;

cudaError_t __wrap__cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                        enum cudaJitOption *jit, void **jit_values,
                                        unsigned jit_count, enum cudaLibraryOption *options,
                                        void **values, unsigned count)
{
    return __real__cudaLibraryLoadData(library, cutegen_code != NULL ? cutegen_code : code, jit,
                                       jit_values, jit_count, options, values, count);
}
