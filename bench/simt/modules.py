#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write CUDA C++ kernels at random, in many styles and sizes, that nobody tuned simt for.

    modules.py OUT [--count 300] [--seed 1] [--per-file 20]

OUT gets modN.cu with kernels kM_STYLE, and `kernels`: a line "FILE KERNEL X,Y,Z" for each, with its block shape.
bench/simt/modules.sh compiles and measures them.
"""

import argparse
import random
from collections.abc import Callable
from pathlib import Path

Rng = random.Random
Kernel = tuple[str, str, tuple[int, int, int]]  # text, name, block

HEAD = """#include <cstdint>
#include <cuda_fp16.h>
__constant__ float table_f[64];
__constant__ unsigned table_u[256];
__device__ __forceinline__ unsigned rot(unsigned x, int k) { return x << k | x >> (32 - k); }
"""


def size(rng: Rng, least: int, most: int) -> int:
    """Small ones are common, large ones are there."""
    return int(least * (most / least) ** rng.random())


def pointwise(rng: Rng, name: str) -> Kernel:
    t = rng.choice(["float", "float", "double", "int"])
    ops = {
        "float": ["x = x * {a}f + y;", "x = fmaxf(x, y * {a}f);", "x = expf(-fabsf(x)) + y;", "x = tanhf(x);",
                  "x = x / (1.0f + fabsf(y));", "y = sqrtf(fabsf(x)) - y;", "y = x > {a}f ? y : y * x;",
                  "x = logf(fabsf(x) + 1.0f);", "y = sinf(y) * x;", "x = rsqrtf(x * x + 1.0f) * y;"],
        "double": ["x = x * {a} + y;", "x = fmax(x, y * {a});", "y = x / (1.0 + y * y);", "x = sqrt(fabs(x)) + y;",
                   "y = x > {a} ? y : x - y;", "y = y * y - x;"],
        "int": ["x = x * {n} + y;", "x ^= y >> {s};", "y = x & 0x{n}ff | y;", "x = x > y ? x - y : y << {s};",
                "y = y / ({n} | 1) + x;", "x = __popc(x) + y;", "y = min(x, y) + {n};", "x = __clz(y) ^ x;"],
    }[t]
    body = "\n".join(
        "    " + rng.choice(ops).format(a=round(rng.uniform(0.1, 2.0), 3), n=rng.randint(3, 99), s=rng.randint(1, 9))
        for _ in range(size(rng, 3, 120)))
    text = f"""extern "C" __global__ void {name}({t} const *a, {t} const *b, {t} *out, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    {t} x = a[i], y = b[i];
{body}
    out[i] = x + y;
}}
"""
    return text, name, (rng.choice([64, 128, 256, 512]), 1, 1)


def reduction(rng: Rng, name: str) -> Kernel:
    t = rng.choice(["float", "double", "int", "unsigned"])
    threads = rng.choice([64, 128, 256, 512])
    op = rng.choice(["a + b", "a > b ? a : b", "a * b + a"])
    many = rng.choice([1, 4, 8, 16])
    tree = rng.random() < 0.5
    last = (f"""for (int s = {threads} / 2; s > 0; s /= 2) {{
        if (threadIdx.x < s)
            part[threadIdx.x] = join(part[threadIdx.x], part[threadIdx.x + s]);
        __syncthreads();
    }}""" if tree else f"""sum = part[threadIdx.x];
    #pragma unroll
    for (int d = 16; d; d /= 2)
        sum = join(sum, __shfl_xor_sync(~0u, sum, d));
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 1; i < {threads} / 32; i++)
            part[0] = join(part[0], part[i]);""")
    text = f"""extern "C" __global__ void {name}({t} const *in, {t} *out, int n)
{{
    __shared__ {t} part[{threads}];
    auto join = []({t} a, {t} b) {{ return {op}; }};
    {t} sum = 0;
    #pragma unroll {many}
    for (int i = blockIdx.x * {threads} + threadIdx.x; i < n; i += gridDim.x * {threads})
        sum = join(sum, in[i]);
    part[threadIdx.x] = sum;
    __syncthreads();
    {last}
    if (threadIdx.x == 0)
        out[blockIdx.x] = part[0];
}}
"""
    return text, name, (threads, 1, 1)


def product(rng: Rng, name: str) -> Kernel:
    t = rng.choice(["float", "float", "float", "double", "__half"])
    b = rng.choice([8, 16, 32])
    m, n = (rng.choice([1, 2, 4, 8]), rng.choice([1, 2, 4])) if b < 32 else (rng.choice([1, 2]), 1)
    k = rng.choice([8, 16, 32]) if t != "double" else 8
    acc = "float" if t == "__half" else t
    load = "__half2float({})" if t == "__half" else "{}"
    store = "__float2half({})" if t == "__half" else "{}"
    text = f"""extern "C" __global__ void {name}({t} const *a, {t} const *b, {t} *c, int m, int n, int k)
{{
    __shared__ {t} ta[{b * m}][{k + 1}], tb[{k}][{b * n}];
    int tx = threadIdx.x, ty = threadIdx.y, me = ty * {b} + tx;
    int row = blockIdx.y * {b * m}, column = blockIdx.x * {b * n};
    {acc} sum[{m}][{n}] = {{}};
    for (int at = 0; at < k; at += {k}) {{
        for (int i = me; i < {b * m * k}; i += {b * b})
            ta[i / {k}][i % {k}] = row + i / {k} < m && at + i % {k} < k ? a[(row + i / {k}) * k + at + i % {k}] : {t}(0);
        for (int i = me; i < {b * n * k}; i += {b * b})
            tb[i / {b * n}][i % {b * n}] = b[(at + i / {b * n}) * n + column + i % {b * n}];
        __syncthreads();
        #pragma unroll {rng.choice([1, 4, k])}
        for (int q = 0; q < {k}; q++)
            for (int i = 0; i < {m}; i++)
                for (int j = 0; j < {n}; j++)
                    sum[i][j] += {load.format(f"ta[ty + i * {b}][q]")} * {load.format(f"tb[q][tx + j * {b}]")};
        __syncthreads();
    }}
    for (int i = 0; i < {m}; i++)
        for (int j = 0; j < {n}; j++)
            if (row + ty + i * {b} < m && column + tx + j * {b} < n)
                c[(row + ty + i * {b}) * n + column + tx + j * {b}] = {store.format("sum[i][j]")};
}}
"""
    return text, name, (b, b, 1)


def stencil(rng: Rng, name: str) -> Kernel:
    t, r = rng.choice(["float", "double"]), rng.randint(1, 5)
    x, y = rng.choice([(32, 8), (16, 16), (64, 4)])
    clamp = rng.random() < 0.5
    at = "min(max(x + i, 0), w - 1) + min(max(y + j, 0), h - 1) * w" if clamp else "x + i + (y + j) * w"
    guard = "" if clamp else "if (x + i >= 0 && x + i < w && y + j >= 0 && y + j < h)"
    text = f"""extern "C" __global__ void {name}({t} const *in, {t} *out, int w, int h)
{{
    int x = blockIdx.x * {x} + threadIdx.x, y = blockIdx.y * {y} + threadIdx.y;
    if (x >= w || y >= h)
        return;
    {t} sum = 0;
    #pragma unroll
    for (int j = -{r}; j <= {r}; j++)
        #pragma unroll {rng.choice([1, 2 * r + 1])}
        for (int i = -{r}; i <= {r}; i++)
            {guard}
                sum += in[{at}] * table_f[(i + {r}) + (j + {r}) * {2 * r + 1} & 63];
    out[y * w + x] = sum;
}}
"""
    return text, name, (x, y, 1)


def scan(rng: Rng, name: str) -> Kernel:
    t, threads, each = rng.choice(["int", "float"]), rng.choice([128, 256, 512]), rng.choice([1, 2, 4, 8])
    text = f"""extern "C" __global__ void {name}({t} const *in, {t} *out, int n)
{{
    __shared__ {t} warp[32];
    {t} v[{each}];
    int first = (blockIdx.x * {threads} + threadIdx.x) * {each}, lane = threadIdx.x % 32;
    for (int i = 0; i < {each}; i++)
        v[i] = (first + i < n ? in[first + i] : {t}(0)) + (i ? v[i - 1] : {t}(0));
    {t} all = v[{each - 1}], up = all;
    for (int d = 1; d < 32; d *= 2) {{
        {t} x = __shfl_up_sync(~0u, up, d);
        if (lane >= d)
            up += x;
    }}
    if (lane == 31)
        warp[threadIdx.x / 32] = up;
    __syncthreads();
    {t} before = up - all;
    for (int i = 0; i < threadIdx.x / 32; i++)
        before += warp[i];
    for (int i = 0; i < {each}; i++)
        if (first + i < n)
            out[first + i] = v[i] + before;
}}
"""
    return text, name, (threads, 1, 1)


def hashing(rng: Rng, name: str) -> Kernel:
    rounds, words = size(rng, 8, 600), rng.choice([4, 5, 8])
    unroll = rng.choice([1, 4, rounds, rounds])
    steps = []
    for _ in range(rng.randint(1, 4)):
        i, j, k = (rng.randrange(words) for _ in range(3))
        steps.append(rng.choice([
            f"s[{i}] += s[{j}] ^ rot(s[{k}], {rng.randint(1, 31)});",
            f"s[{i}] = rot(s[{i}] ^ s[{j}], {rng.randint(1, 31)}) + 0x{rng.getrandbits(32):x}u;",
            f"s[{i}] ^= (s[{j}] & s[{k}]) | (~s[{j}] & s[{i}]);",
            f"s[{i}] = s[{i}] * 0x{rng.getrandbits(32) | 1:x}u + table_u[r & 255];",
            f"s[{i}] += __umulhi(s[{j}], 0x{rng.getrandbits(32):x}u) + w[(r + {k}) & 3];",
            f"s[{i}] = __byte_perm(s[{i}], s[{j}], 0x{rng.choice(['2103', '3210', '1032'])});",
        ]))
    body = "\n            ".join(steps)
    text = f"""extern "C" __global__ void {name}(unsigned const *in, unsigned *out, int n, int turns)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned s[{words}], w[4];
    for (int j = 0; j < {words}; j++)
        s[j] = in[i] + j * 0x9e3779b9u;
    for (int j = 0; j < 4; j++)
        w[j] = in[(i + j) % n];
    for (int t = 0; t < turns; t++) {{
        #pragma unroll {unroll}
        for (int r = 0; r < {rounds}; r++) {{
            {body}
        }}
    }}
    unsigned h = 0;
    for (int j = 0; j < {words}; j++)
        h ^= s[j];
    out[i] = h;
}}
"""
    return text, name, (128, 1, 1)


def wide_hashing(rng: Rng, name: str) -> Kernel:
    rounds = size(rng, 4, 200)
    c = rng.getrandbits(64) | 1
    text = f"""extern "C" __global__ void {name}(uint64_t const *in, uint64_t *out, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    uint64_t x = in[i], y = in[n - 1 - i], z = 0;
    #pragma unroll {rng.choice([1, 8, rounds])}
    for (int r = 0; r < {rounds}; r++) {{
        x = (x ^ x >> {rng.randint(5, 40)}) * 0x{c:x}ull + y;
        y = (y << {rng.randint(3, 30)} | y >> {rng.randint(31, 60)}) ^ x;
        z += __umul64hi(x, y) + (x > y ? x : y);
    }}
    out[i] = x ^ y ^ z;
}}
"""
    return text, name, (256, 1, 1)


def halves(rng: Rng, name: str) -> Kernel:
    ops = ["x = __hfma2(x, y, z);", "y = __hadd2(x, y);", "z = __hmul2(z, x);", "x = __hmax2(x, z);",
           "z = h2exp(z);", "y = __hsub2(y, z);"]
    body = "\n    ".join(rng.choice(ops) for _ in range(size(rng, 4, 150)))
    text = f"""extern "C" __global__ void {name}(__half2 const *a, __half2 const *b, __half2 *out, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __half2 x = a[i], y = b[i], z = __hadd2(x, y);
    {body}
    out[i] = __hadd2(x, __hadd2(y, z));
}}
"""
    return text, name, (256, 1, 1)


def interpreter(rng: Rng, name: str) -> Kernel:
    ops = ["x += y;", "y -= x;", "x *= y | 1;", "y ^= x >> 3;", "x = max(x, y);", "y = x % 7 + y;", "x = __brev(y);",
           "stack[sp++ & 7] = x;", "x = stack[--sp & 7];", "y += table_u[x & 255];", "{ int t = x; x = y; y = t; }"]
    cases = "\n            ".join(f"case {i}: {rng.choice(ops)} {rng.choice(ops)} break;"
                                  for i in range(size(rng, 4, 60)))
    text = f"""extern "C" __global__ void {name}(unsigned char const *code, int *out, int n, int steps)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i, y = 1, stack[8] = {{}}, sp = 0;
    if (i >= n)
        return;
    for (int pc = 0; pc < steps; pc++) {{
        switch (code[(pc * 31 + i) % n]) {{
            {cases}
            default: x++;
        }}
    }}
    out[i] = x + y;
}}
"""
    return text, name, (128, 1, 1)


def branches(rng: Rng, name: str) -> Kernel:
    lines: list[str] = []

    def block(depth: int, pad: str) -> None:
        for _ in range(rng.randint(1, 3)):
            kind = rng.random()
            v, w = rng.choice("xyz"), rng.choice("xyz")
            if depth and kind < 0.35:
                lines.append(f"{pad}if ({v} {rng.choice(['>', '<', '=='])} {w} * {rng.randint(1, 9)}) {{")
                block(depth - 1, pad + "    ")
                lines.append(pad + "} else {")
                block(depth - 1, pad + "    ")
                lines.append(pad + "}")
            elif depth and kind < 0.6:
                i = f"i{len(lines)}"
                lines.append(f"{pad}for (int {i} = 0; {i} < ({v} & 15); {i}++) {{")
                block(depth - 1, pad + "    ")
                lines.append(pad + "}")
            elif depth and kind < 0.7:
                lines.append(f"{pad}while ({v} > {rng.randint(20, 90)}) {v} = {v} / 2 - 1;")
            else:
                lines.append(f"{pad}{v} = {rng.choice([f'{v} + {w} * 3', f'{w} - {v}', f'{v} ^ in[({w} & 1023) % n]'])};")

    block(size(rng, 1, 5), "    ")
    block(size(rng, 1, 5), "    ")
    body = "\n".join(lines)
    text = f"""extern "C" __global__ void {name}(int const *in, int *out, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int x = in[i], y = i, z = x ^ y;
{body}
    out[i] = x + y * 3 + z * 5;
}}
"""
    return text, name, (128, 1, 1)


def functions(rng: Rng, name: str) -> Kernel:
    count = rng.randint(1, 6)
    text = ""
    for i in range(count):
        turns = rng.randint(1, 20)
        text += f"""__device__ {rng.choice(['__noinline__', 'inline'])} float {name}_f{i}(float x, float y, int k)
{{
    for (int j = 0; j < k + {turns}; j++)
        x = {rng.choice(['x * y + 1.0f', 'fmaxf(x - y, y)', 'x / (y * y + 1.0f)', 'sqrtf(fabsf(x)) + y'])};
    return x{f' + {name}_f{i - 1}(y, x, k / 2)' if i else ''};
}}
"""
    text += f"""extern "C" __global__ void {name}(float const *in, float *out, int n)
{{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = {name}_f{count - 1}(in[i], 0.5f, i & 3) + {name}_f0(in[i], 2.0f, i & 7);
}}
"""
    return text, name, (256, 1, 1)


def atomics(rng: Rng, name: str) -> Kernel:
    bins = rng.choice([16, 64, 256, 1024])
    op = rng.choice(["atomicAdd(&h[b], 1)", "atomicMax(&h[b], x)", "atomicXor(&h[b], x)", "atomicCAS(&h[b], 0, x)"])
    shared = rng.random() < 0.6
    text = f"""extern "C" __global__ void {name}(int const *in, int *out, int n)
{{
    {f'__shared__ int h[{bins}];' if shared else 'int *h = out;'}
    {f'for (int i = threadIdx.x; i < {bins}; i += blockDim.x) h[i] = 0; __syncthreads();' if shared else ''}
    #pragma unroll {rng.choice([1, 4, 8])}
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {{
        int x = in[i], b = (unsigned)(x * {rng.randint(3, 99999)}) % {bins};
        {op};
    }}
    {f'__syncthreads(); for (int i = threadIdx.x; i < {bins}; i += blockDim.x) atomicAdd(&out[i], h[i]);' if shared else ''}
}}
"""
    return text, name, (256, 1, 1)


def warps(rng: Rng, name: str) -> Kernel:
    ops = ["x += __shfl_xor_sync(~0u, x, {n});", "x = max(x, __shfl_down_sync(~0u, x, {n}));",
           "x += __popc(__ballot_sync(~0u, x > {n}));", "x ^= __shfl_sync(~0u, x, (lane + {n}) & 31);",
           "if (__any_sync(~0u, x == {n})) x++;", "x += __reduce_add_sync(~0u, (unsigned)x & {n});",
           "x += __popc(__match_any_sync(~0u, x & {n}));"]
    body = "\n    ".join(rng.choice(ops).format(n=rng.choice([1, 2, 4, 8, 16])) for _ in range(size(rng, 3, 120)))
    text = f"""extern "C" __global__ void {name}(int const *in, int *out)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, x = in[i] + lane;
    {body}
    out[i] = x;
}}
"""
    return text, name, (128, 1, 1)


def network(rng: Rng, name: str) -> Kernel:
    """A sorting network or butterflies over an array in registers: one large body."""
    n = rng.choice([8, 16, 32, 64])
    t = rng.choice(["int", "float"])
    step = (f"{t} lo = min(v[i], v[i ^ j]), hi = max(v[i], v[i ^ j]); v[i] = i & k ? hi : lo; v[i ^ j] = i & k ? lo : hi;"
            if rng.random() < 0.5 else
            f"{t} p = v[i], q = v[i ^ j]; v[i] = p + q; v[i ^ j] = (p - q) * {t}(i + 3);")
    text = f"""extern "C" __global__ void {name}({t} const *in, {t} *out, int n)
{{
    int at = (blockIdx.x * blockDim.x + threadIdx.x) * {n};
    if (at + {n} > n)
        return;
    {t} v[{n}];
    #pragma unroll
    for (int i = 0; i < {n}; i++)
        v[i] = in[at + i];
    #pragma unroll
    for (int k = 2; k <= {n}; k *= 2)
        #pragma unroll
        for (int j = k / 2; j > 0; j /= 2)
            #pragma unroll
            for (int i = 0; i < {n}; i++)
                if ((i ^ j) > i) {{
                    {step}
                }}
    #pragma unroll
    for (int i = 0; i < {n}; i++)
        out[at + i] = v[i];
}}
"""
    return text, name, (64, 1, 1)


def solver(rng: Rng, name: str) -> Kernel:
    """Elimination of a small system in registers."""
    n, t = rng.choice([3, 4, 5, 6, 8, 10]), rng.choice(["float", "double"])
    text = f"""extern "C" __global__ void {name}({t} const *in, {t} *out, int count)
{{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= count)
        return;
    {t} a[{n}][{n + 1}];
    #pragma unroll
    for (int i = 0; i < {n * (n + 1)}; i++)
        a[i / {n + 1}][i % {n + 1}] = in[s * {n * (n + 1)} + i];
    #pragma unroll
    for (int p = 0; p < {n}; p++) {{
        {t} scale = {t}(1) / a[p][p];
        #pragma unroll
        for (int j = p; j <= {n}; j++)
            a[p][j] *= scale;
        #pragma unroll
        for (int i = 0; i < {n}; i++) {{
            if (i == p)
                continue;
            {t} f = a[i][p];
            #pragma unroll
            for (int j = p; j <= {n}; j++)
                a[i][j] -= f * a[p][j];
        }}
    }}
    #pragma unroll
    for (int i = 0; i < {n}; i++)
        out[s * {n} + i] = a[i][{n}];
}}
"""
    return text, name, (64, 1, 1)


def local_arrays(rng: Rng, name: str) -> Kernel:
    n = rng.choice([16, 32, 100])
    text = f"""extern "C" __global__ void {name}(int const *in, int *out, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v[{n}], top = 0;
    if (i >= n)
        return;
    for (int j = 0; j < {n}; j++)
        v[j] = in[(i + j * {rng.randint(1, 9)}) % n];
    for (int j = 1; j < {n}; j++) {{
        int x = v[j], k = j - 1;
        for (; k >= 0 && v[k] > x; k--)
            v[k + 1] = v[k];
        v[k + 1] = x;
    }}
    #pragma unroll {rng.choice([1, 4])}
    for (int j = 0; j < {n}; j++)
        top = top * 31 + v[(v[j] & 0x7fffffff) % {n}];
    out[i] = top;
}}
"""
    return text, name, (128, 1, 1)


def bytes_(rng: Rng, name: str) -> Kernel:
    t = rng.choice(["unsigned char", "signed char", "unsigned short", "short"])
    many = rng.choice([1, 4, 16])
    text = f"""extern "C" __global__ void {name}({t} const *in, {t} *out, int n)
{{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * {many};
    unsigned crc = ~0u;
    #pragma unroll
    for (int j = 0; j < {many}; j++)
        if (i + j < n) {{
            int x = in[i + j], y = in[(i + j + {rng.randint(1, 500)}) % n];
            crc = crc >> 8 ^ table_u[(crc ^ x) & 255];
            out[i + j] = ({t})((x * {rng.randint(2, 9)} + y + (int)(crc & 3)) >> {rng.randint(0, 3)});
        }}
}}
"""
    return text, name, (256, 1, 1)


def monte_carlo(rng: Rng, name: str) -> Kernel:
    rounds = rng.choice([7, 10, 20])
    text = f"""extern "C" __global__ void {name}(float *out, unsigned seed, int turns)
{{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < turns; t++) {{
        unsigned a = i, b = t, c = seed, d = 7, k0 = seed, k1 = i;
        #pragma unroll {rng.choice([1, rounds])}
        for (int r = 0; r < {rounds}; r++) {{
            unsigned h0 = __umulhi(0xD2511F53u, a), l0 = 0xD2511F53u * a;
            unsigned h1 = __umulhi(0xCD9E8D57u, c), l1 = 0xCD9E8D57u * c;
            a = h1 ^ b ^ k0, b = l1, c = h0 ^ d ^ k1, d = l0;
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }}
        float u = (a >> 8) * 5.9604645e-8f, v = (b >> 8) * 5.9604645e-8f;
        sum += {rng.choice(['u * u + v * v < 1.0f ? 1.0f : 0.0f', 'sqrtf(-2.0f * logf(u + 1e-7f)) * cosf(6.2831853f * v)'])};
    }}
    out[i] = sum;
}}
"""
    return text, name, (256, 1, 1)


def softmax(rng: Rng, name: str) -> Kernel:
    each = rng.choice([1, 4, 8, 32])
    t = rng.choice(["float", "__half"])
    up, down = ("__half2float(", "__float2half(") if t == "__half" else ("(", "(")
    text = f"""extern "C" __global__ void {name}({t} const *in, {t} *out, int rows)
{{
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows)
        return;
    float v[{each}], top = -1e30f, sum = 0;
    for (int i = 0; i < {each}; i++)
        top = fmaxf(top, v[i] = {up}in[(row * {each} + i) * 32 + lane]));
    for (int d = 16; d; d /= 2)
        top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
    for (int i = 0; i < {each}; i++)
        sum += v[i] = __expf(v[i] - top);
    for (int d = 16; d; d /= 2)
        sum += __shfl_xor_sync(~0u, sum, d);
    for (int i = 0; i < {each}; i++)
        out[(row * {each} + i) * 32 + lane] = {down}v[i] / sum);
}}
"""
    return text, name, (32, rng.choice([1, 4, 8]), 1)


def straight(rng: Rng, name: str) -> Kernel:
    """One long body without loops, up to some 30,000 instructions."""
    n = size(rng, 300, 20000)
    t = rng.choice(["float", "float", "int", "unsigned"])
    names = [f"v{i}" for i in range(rng.choice([8, 24, 64]))]
    lines = []
    for i in range(n):
        a, b, c = (rng.choice(names) for _ in range(3))
        kind = rng.random()
        if kind < 0.04:
            lines.append(f"{a} += in[(i + {i}) % n];")
        elif kind < 0.06:
            lines.append(f"out[(i + {i}) % n] = {b};")
        elif kind < 0.08:
            lines.append(f"if ({b} > {c}) {a} = {b} - {a};")
        elif t == "float":
            lines.append(rng.choice([f"{a} = {b} * {c} + {a};", f"{a} = fmaxf({b}, {c});", f"{a} = {b} - {c};"]))
        else:
            lines.append(rng.choice([f"{a} = {b} * {c} + {a};", f"{a} ^= {b} >> {i % 31};", f"{a} = {b} - {c};"]))
    body = "\n    ".join(lines)
    text = f"""extern "C" __global__ void {name}({t} const *in, {t} *out, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {t} {', '.join(f'{v} = in[(i + {j}) % n]' for j, v in enumerate(names))};
    {body}
    out[i] = {' + '.join(names)};
}}
"""
    return text, name, (64, 1, 1)


STYLES: list[Callable[[Rng, str], Kernel]] = [
    pointwise, reduction, product, stencil, scan, hashing, wide_hashing, halves, interpreter, branches, functions,
    atomics, warps, network, solver, local_arrays, bytes_, monte_carlo, softmax, straight,
]


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path)
    p.add_argument("--count", type=int, default=300)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--per-file", type=int, default=20)
    o = p.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    kernels: list[Kernel] = []
    for i in range(o.count):
        style = STYLES[i % len(STYLES)]
        kernels.append(style(Rng(f"{o.seed}/{i}"), f"k{i}_{style.__name__.strip('_')}"))
    index = []
    for at in range(0, len(kernels), o.per_file):
        part = kernels[at : at + o.per_file]
        file = f"mod{at // o.per_file}"
        (o.out / f"{file}.cu").write_text(HEAD + "\n".join(text for text, _, _ in part))
        index += [f"{file}.ptx {name} {b[0]},{b[1]},{b[2]}" for _, name, b in part]
    (o.out / "kernels").write_text("\n".join(index) + "\n")


if __name__ == "__main__":
    main()
