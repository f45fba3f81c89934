// attention_race.cu - calls exported kernels of attention once each, for compute-sanitizer.
//
//     nvcc -o attention_race bench/gpu/attention_race.cu -ldl
//     compute-sanitizer --tool racecheck ./attention_race KERNELS/f16_128.so:2:1:2:2:200:200:128 ...
//
// An argument is FILE:BYTES:BATCH:HEADS:SHARED:QUERIES:KEYS:HEAD; with :backward behind it, its kernel makes dQ, dK and
// dV. Exit 1: a kernel could not be called.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tensor { // as cutegen/kernel.h has it
    void *data;
    int32_t device[2], ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

typedef int (*call_fn)(const struct tensor *, int, struct tensor *, int, const void *, int, void *, char *, size_t);

struct shape {
    int64_t size[4], stride[4];
};

// Numbers between 0.125 and 0.25, or about 1 in bf16: only races are looked for.
static struct tensor make(struct shape *s, int bytes, long b, long h, long rows, long columns)
{
    size_t count = (size_t)(b * h * rows * columns);
    char *host = (char *)malloc(count * (size_t)bytes);
    struct tensor t = {};

    for (size_t i = 0; i < count; i++) {
        unsigned x = bytes == 2 ? 0x3000u + (unsigned)(rand() & 0x3ff) : 0x3e000000u + (unsigned)(rand() & 0x7fffff);
        memcpy(host + i * (size_t)bytes, &x, (size_t)bytes);
    }
    cudaMalloc(&t.data, count * (size_t)bytes);
    cudaMemcpy(t.data, host, count * (size_t)bytes, cudaMemcpyHostToDevice);
    free(host);
    *s = {{b, h, rows, columns}, {h * rows * columns, rows * columns, columns, 1}};
    t.device[0] = 2;
    t.ndim = 4;
    t.code = 2;
    t.bits = (uint8_t)(bytes * 8);
    t.lanes = 1;
    t.shape = s->size;
    t.strides = s->stride;
    return t;
}

int main(int argc, char **argv)
{
    int bad = 0;

    for (int i = 1; i < argc; i++) {
        char path[500], why[500] = "";
        long bytes, b, h, shared, queries, keys, head;
        struct shape s[7];
        bool backward = strstr(argv[i], ":backward") != nullptr;

        if (sscanf(argv[i], "%499[^:]:%ld:%ld:%ld:%ld:%ld:%ld:%ld", path, &bytes, &b, &h, &shared, &queries, &keys, &head) != 8)
            return 2;
        void *lib = dlopen(path, RTLD_NOW);
        call_fn call = lib ? (call_fn)dlsym(lib, "cutegen_call_kernel") : nullptr;
        struct tensor in[4] = {make(&s[0], (int)bytes, b, h, queries, head), make(&s[1], (int)bytes, b, shared, keys, head),
                               make(&s[2], (int)bytes, b, shared, keys, head), make(&s[3], (int)bytes, b, h, queries, head)};
        struct tensor out[3] = {make(&s[4], (int)bytes, b, h, queries, head), make(&s[5], (int)bytes, b, shared, keys, head),
                                make(&s[6], (int)bytes, b, shared, keys, head)};
        int failed = !call || call(in, backward ? 4 : 3, out, backward ? 3 : 1, nullptr, 0, nullptr, why, sizeof(why)) ||
                     cudaDeviceSynchronize() != cudaSuccess;

        printf("%s: %s %s\n", argv[i], failed ? "FAILED" : "ran", call ? why : dlerror());
        fflush(stdout);
        bad |= failed;
    }
    return bad;
}
