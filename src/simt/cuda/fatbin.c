/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fatbin.c - extract this device's PTX from the images that programs pass to the driver.
 *
 * A wrapper (what nvcc puts beside each object) points to a fat binary: a head and entries, each
 * with its kind, architecture and, where compressed, the packed size. nvcc 13 packs with zstd,
 * earlier ones with LZ4 blocks. Entries with machine code are skipped.
 */
#include "simt/cuda/cuda.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum {
    WRAPPER_MAGIC = 0x466243b1,
    FATBIN_MAGIC = (int)0xba55ed50,
    KIND_PTX = 1,
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
    MAX_PTX = 1 << 30
};

struct fatbin_wrapper {
    int32_t magic, version;
    const void *data;
    const void *more; /* version 2: NULL-terminated list of fat binaries of a relocatable link */
};

struct fatbin_head {
    uint32_t magic;
    uint16_t version, head_bytes;
    uint64_t bytes; /* of all entries */
};

struct fatbin_entry {
    uint16_t kind, version;
    uint32_t head_bytes;
    uint64_t bytes;
    uint32_t packed_bytes, unknown0;
    uint16_t minor, major;
    uint32_t arch;
    uint32_t name_at, name_bytes;
    uint64_t flags;
    uint64_t unknown1;
    uint64_t full_bytes;
};

/* One LZ4 block; the number of bytes written, or 0 when it is broken. */
static size_t lz4_unpack(const unsigned char *in, size_t n, char *out, size_t room)
{
    size_t i = 0, o = 0;

    while (i < n) {
        unsigned token = in[i++];
        size_t len = token >> 4, back;

        for (unsigned b = 255; len >= 15 && b == 255 && i < n; len += b)
            b = in[i++];
        if (len > n - i || len > room - o)
            return 0;
        memcpy(out + o, in + i, len);
        i += len;
        o += len;
        if (i >= n)
            return o;
        if (n - i < 2)
            return 0;
        back = (size_t)in[i] | (size_t)in[i + 1] << 8;
        i += 2;
        len = token & 15;
        for (unsigned b = 255; len >= 15 && b == 255 && i < n; len += b)
            b = in[i++];
        len += 4;
        if (!back || back > o || len > room - o)
            return 0;
        for (; len; len--, o++)
            out[o] = out[o - back];
    }
    return o;
}

static size_t zstd_unpack(const void *in, size_t n, char *out, size_t room)
{
    static size_t (*decompress)(void *, size_t, const void *, size_t);
    static bool tried;
    size_t got;

    if (!tried) {
        void *h = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);

        tried = true;
        if (h)
            decompress =
                (size_t(*)(void *, size_t, const void *, size_t))dlsym(h, "ZSTD_decompress");
    }
    if (!decompress) {
        cuda_say("the program's PTX is packed with zstd and there is no libzstd.so.1; install it "
                 "(Debian: libzstd1), or build with nvcc --no-compress");
        return 0;
    }
    got = decompress(out, room, in, n);
    return got <= room ? got : 0;
}

static int entry_text(const struct fatbin_entry *e, struct arena *a, struct text *out)
{
    const char *data = (const char *)e + e->head_bytes;
    uint64_t full = e->flags & (FLAG_LZ4 | FLAG_ZSTD) ? e->full_bytes : e->bytes;
    char *text;
    size_t n;

    if (full > MAX_PTX)
        return CU_INVALID_IMAGE;
    text = arena_alloc(a, full + 1);
    if (e->flags & FLAG_ZSTD)
        n = zstd_unpack(data, e->packed_bytes, text, full);
    else if (e->flags & FLAG_LZ4)
        n = lz4_unpack((const unsigned char *)data, e->packed_bytes, text, full);
    else
        memcpy(text, data, n = full);
    if (!n)
        return CU_INVALID_IMAGE;
    *out = (struct text){text, strnlen(text, n)};
    return CU_OK;
}

/* Code for sm_90a is for that GPU alone, and for none of another family. */
static bool runs_here(struct text ptx, unsigned arch, const struct cu_gpu *g)
{
    unsigned mine = (unsigned)(g->major * 10 + g->minor);
    const char *target = memmem(ptx.data, ptx.len < 4096 ? ptx.len : 4096, ".target sm_", 11);
    char last = target ? target[11 + strspn(target + 11, "0123456789")] : 0;

    return last == 'a'   ? arch == mine
           : last == 'f' ? arch / 10 == mine / 10 && arch <= mine
                         : arch <= mine;
}

static void say_no_ptx(const unsigned *archs, size_t n, size_t ptx, const struct cu_gpu *g)
{
    char text[256] = "";
    size_t len = 0;

    for (size_t i = 0; i < n && len + 16 < sizeof text; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, " sm_%u", archs[i]);
    if (ptx)
        cuda_say("the program has PTX only for%s and this device is sm_%d%d; choose another with "
                 "--simt-as, or build for it (nvcc -arch=compute_%d%d)",
                 text, g->major, g->minor, g->major, g->minor);
    else
        cuda_say("the program has machine code only (%s ) and no PTX; build it with PTX "
                 "(nvcc -gencode arch=compute_%d%d,code=compute_%d%d)",
                 text, g->major, g->minor, g->major, g->minor);
}

static int from_fatbin(const struct fatbin_head *h, const struct cu_gpu *g, struct arena *a,
                       struct text *best, unsigned *best_arch)
{
    const char *at = (const char *)h + h->head_bytes, *end = at + h->bytes;
    unsigned archs[16];
    size_t n = 0, ptx = 0;

    while (end - at >= (ptrdiff_t)sizeof(struct fatbin_entry)) {
        const struct fatbin_entry *e = (const struct fatbin_entry *)at;
        struct text t;

        if (e->head_bytes < sizeof *e || e->bytes > (uint64_t)(end - at) - e->head_bytes)
            return CU_INVALID_IMAGE;
        if (n < ARRAY_LEN(archs))
            archs[n++] = e->arch;
        if (e->kind == KIND_PTX) {
            int rc = entry_text(e, a, &t);

            if (rc)
                return rc;
            ptx++;
            if (runs_here(t, e->arch, g) && e->arch >= *best_arch) {
                *best = t;
                *best_arch = e->arch;
            }
        }
        at += e->head_bytes + e->bytes;
    }
    if (n && !best->len)
        say_no_ptx(archs, n, ptx, g);
    return best->len ? CU_OK : CU_NO_BINARY;
}

/* PTX of the image that this thread loads next, which has machine code only: told by Python for the
 * CuTe DSL (oracle/simt_exec). NULL: as usual. */
static _Thread_local const char *offered;

__attribute__((visibility("default"))) void cutegen_offer_ptx(const char *ptx);
void cutegen_offer_ptx(const char *ptx)
{
    offered = ptx;
}

int fatbin_ptx(const void *image, const struct cu_gpu *g, struct arena *a, struct text *out)
{
    const struct fatbin_wrapper *w = image;
    unsigned arch = 0;
    int32_t magic;

    *out = (struct text){0};
    if (offered) {
        *out = arena_text(a, offered, strlen(offered));
        return CU_OK;
    }
    memcpy(&magic, image, sizeof magic);
    if (magic == WRAPPER_MAGIC) {
        if (w->version == 2)
            cuda_say("a relocatable link (nvcc -rdc=true): only its first part is used");
        return fatbin_ptx(w->data, g, a, out);
    }
    if (magic == FATBIN_MAGIC)
        return from_fatbin(image, g, a, out, &arch);
    if (memcmp(image, "\177ELF", 4) == 0) {
        cuda_say("the program loads machine code (a cubin); this device takes PTX: build it with "
                 "nvcc -ptx or -fatbin");
        return CU_NO_BINARY;
    }
    if (!isprint((unsigned char)*(const char *)image) &&
        !isspace((unsigned char)*(const char *)image))
        return CU_INVALID_IMAGE;
    *out = arena_text(a, image, strlen(image));
    return CU_OK;
}
