/* crash_nvrtc.c - an NVRTC that dies on every source: what the builder makes of it is tested. */
#include <stddef.h>
#include <stdlib.h>

#include "toolchain/nvrtc_api.h"

#define FUNCTION(name, parameters)                                                                 \
    int name parameters;                                                                           \
    int name parameters

FUNCTION(nvrtcVersion, (int *major, int *minor))
{
    *major = 13;
    *minor = 0;
    return 0;
}

const char *nvrtcGetErrorString(int result);
const char *nvrtcGetErrorString(int result)
{
    return result ? "error" : "none";
}

FUNCTION(nvrtcCreateProgram, (nvrtc_program * p, const char *source, const char *name, int n,
                              const char *const *sources, const char *const *names))
{
    (void)source, (void)name, (void)n, (void)sources, (void)names;
    *p = NULL;
    return 0;
}

FUNCTION(nvrtcCompileProgram, (nvrtc_program p, int count, const char *const *options))
{
    (void)p, (void)count, (void)options;
    abort();
}

#define NOTHING(name)                                                                              \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return 0;                                                                                  \
    }
NOTHING(nvrtcDestroyProgram)
NOTHING(nvrtcAddNameExpression)
NOTHING(nvrtcGetLoweredName)
NOTHING(nvrtcGetProgramLogSize)
NOTHING(nvrtcGetProgramLog)
NOTHING(nvrtcGetPTXSize)
NOTHING(nvrtcGetPTX)
NOTHING(nvrtcGetCUBINSize)
NOTHING(nvrtcGetCUBIN)
