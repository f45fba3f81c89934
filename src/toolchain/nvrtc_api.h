/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvrtc_api.h - the part of NVRTC that the builder calls, loaded with dlopen.
 *
 * Declared here so that building cutegen needs no CUDA header.
 */
#ifndef TOOLCHAIN_NVRTC_API_H
#define TOOLCHAIN_NVRTC_API_H

#include <stddef.h>

typedef struct _nvrtcProgram *nvrtc_program;

/* X(member, symbol, required, return type, parameters) */
#define NVRTC_FUNCTIONS(X)                                                                         \
    X(version, "nvrtcVersion", 1, int, (int *major, int *minor))                                   \
    X(error_string, "nvrtcGetErrorString", 1, const char *, (int result))                          \
    X(create, "nvrtcCreateProgram", 1, int,                                                        \
      (nvrtc_program * p, const char *source, const char *name, int headers,                       \
       const char *const *header_sources, const char *const *header_names))                        \
    X(destroy, "nvrtcDestroyProgram", 1, int, (nvrtc_program * p))                                 \
    X(add_name, "nvrtcAddNameExpression", 1, int, (nvrtc_program p, const char *name))             \
    X(lowered_name, "nvrtcGetLoweredName", 1, int,                                                 \
      (nvrtc_program p, const char *name, const char **lowered))                                   \
    X(compile, "nvrtcCompileProgram", 1, int,                                                      \
      (nvrtc_program p, int count, const char *const *options))                                    \
    X(log_size, "nvrtcGetProgramLogSize", 1, int, (nvrtc_program p, size_t * size))                \
    X(log, "nvrtcGetProgramLog", 1, int, (nvrtc_program p, char *log))                             \
    X(ptx_size, "nvrtcGetPTXSize", 1, int, (nvrtc_program p, size_t * size))                       \
    X(ptx, "nvrtcGetPTX", 1, int, (nvrtc_program p, char *ptx))                                    \
    X(cubin_size, "nvrtcGetCUBINSize", 1, int, (nvrtc_program p, size_t * size))                   \
    X(cubin, "nvrtcGetCUBIN", 1, int, (nvrtc_program p, char *cubin))                              \
    X(pch_heap, "nvrtcSetPCHHeapSize", 0, int, (size_t bytes))                                     \
    X(pch_status, "nvrtcGetPCHCreateStatus", 0, int, (nvrtc_program p))

struct nvrtc_api {
#define NVRTC_MEMBER(member, symbol, required, type, parameters) type(*member) parameters;
    NVRTC_FUNCTIONS(NVRTC_MEMBER)
#undef NVRTC_MEMBER
};

#endif
