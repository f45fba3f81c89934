/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook.c - redirect a program linked with the static runtime (nvcc's default) to this one.
 *
 * Before the program's constructors run, each function of its symbol table whose name is one of
 * this library's runtime calls gets a jump to it. A program without symbol table cannot be
 * redirected; its runtime then asks the driver for missing tables, which entries.c reports.
 *
 * The CuTe DSL's library holds a static runtime without symbols, and exports each call that its
 * kernels' host code makes under another name: _cudaMalloc jumps to cudaMalloc. Python asks for it
 * (oracle/simt_exec): what those jump to is redirected, so the library's own calls are too. Those
 * of the driver (_cuTensorMapEncodeTiled) are not jumps and are redirected themselves.
 */
#include "simt/cuda/cuda.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
/* jmp *0(%rip), then the address */
static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
#define HOOKS 1
#elif defined(__aarch64__)
/* ldr x16, .+8; br x16, then the address */
static const unsigned char jump[] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6};
#define HOOKS 1
#endif

#ifdef HOOKS
struct hooked_image {
    const char *map;
    size_t bytes;
    uintptr_t base; /* where the program lies */
};

static bool map_file(struct hooked_image *p, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    p->map = MAP_FAILED;
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && st.st_size > (off_t)sizeof(ElfW(Ehdr))) {
        p->bytes = (size_t)st.st_size;
        p->map = mmap(NULL, p->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    return p->map != MAP_FAILED && memcmp(p->map, ELFMAG, SELFMAG) == 0;
}

/* The first object is the program. */
static int first_base(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

static void redirect(uintptr_t at, const void *to)
{
    long page = sysconf(_SC_PAGESIZE);
    uintptr_t from = at / (uintptr_t)page * (uintptr_t)page;
    size_t bytes = at + sizeof jump + sizeof to - from;

    if (mprotect((void *)from, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return;
    memcpy((void *)at, jump, sizeof jump);
    memcpy((void *)(at + sizeof jump), &to, sizeof to);
    mprotect((void *)from, bytes, PROT_READ | PROT_EXEC);
    __builtin___clear_cache((char *)at, (char *)at + sizeof jump + sizeof to);
}

static void hook_symbols(const struct hooked_image *p, const ElfW(Shdr) * table,
                         const ElfW(Shdr) * names, void *own)
{
    const ElfW(Sym) *s = (const ElfW(Sym) *)(p->map + table->sh_offset);
    const char *text = p->map + names->sh_offset;

    for (size_t n = table->sh_size / sizeof *s; n; n--, s++) {
        const char *name = text + s->st_name;
        void *to;

        if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || !s->st_value || s->st_name >= names->sh_size)
            continue;
        if (strncmp(name, "cuda", 4) != 0 && strncmp(name, "__cuda", 6) != 0)
            continue;
        to = dlsym(own, name);
        if (to)
            redirect(p->base + s->st_value, to);
    }
}

/* Its table of sections, or NULL. */
static const ElfW(Shdr) * sections_of(const struct hooked_image *p)
{
    const ElfW(Ehdr) *h = (const ElfW(Ehdr) *)p->map;
    const ElfW(Shdr) *s = (const ElfW(Shdr) *)(p->map + h->e_shoff);

    return !h->e_shoff || h->e_shoff > p->bytes || h->e_shstrndx >= h->e_shnum ||
                   h->e_shnum > (p->bytes - h->e_shoff) / sizeof *s
               ? NULL
               : s;
}

/* Section i is a table of symbols of this type, and it and its names lie within the file. */
static bool is_table(const struct hooked_image *p, const ElfW(Shdr) * s, int i, unsigned type)
{
    const ElfW(Ehdr) *h = (const ElfW(Ehdr) *)p->map;

    return s[i].sh_type == type && s[i].sh_link < h->e_shnum &&
           s[i].sh_offset + s[i].sh_size <= p->bytes &&
           s[s[i].sh_link].sh_offset + s[s[i].sh_link].sh_size <= p->bytes;
}

static void hook_image(const struct hooked_image *p, void *own)
{
    const ElfW(Ehdr) *h = (const ElfW(Ehdr) *)p->map;
    const ElfW(Shdr) *s = sections_of(p);
    bool fatbin = false;

    if (!s)
        return;
    for (int i = 0; i < h->e_shnum; i++) {
        const char *name = p->map + s[h->e_shstrndx].sh_offset + s[i].sh_name;

        fatbin |= strcmp(name, ".nvFatBinSegment") == 0;
    }
    for (int i = 0; fatbin && i < h->e_shnum; i++)
        if (is_table(p, s, i, SHT_SYMTAB))
            hook_symbols(p, &s[i], &s[s[i].sh_link], own);
}

__attribute__((constructor)) static void hook_program(void)
{
    struct hooked_image p = {0};
    Dl_info info;
    void *own;

    if (!map_file(&p, "/proc/self/exe"))
        return;
    dl_iterate_phdr(first_base, &p.base);
    own = dladdr((void *)&hook_program, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                                               : NULL;
    if (own)
        hook_image(&p, own);
    munmap((void *)(uintptr_t)p.map, p.bytes);
}

/* ---- a library that exports a runtime's calls ------------------------------
 * under names such as _cudaMalloc */

/* The target of a function that is a single jump; 0: it is not. */
static uintptr_t jumps_to(uintptr_t at)
{
#if defined(__x86_64__)
    static const unsigned char landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
    int32_t step;

    if (memcmp((const void *)at, landing, sizeof landing) == 0)
        at += sizeof landing;
    if (*(const unsigned char *)at != 0xe9)
        return 0;
    memcpy(&step, (const void *)(at + 1), sizeof step);
    return at + 5 + (uintptr_t)(intptr_t)step;
#else
    int32_t word;

    memcpy(&word, (const void *)at, sizeof word);
    return (uint32_t)word >> 26 != 5
               ? 0
               : at + (uintptr_t)((intptr_t)((int32_t)((uint32_t)word << 6) >> 6) * 4);
#endif
}

static int hook_exported(const struct hooked_image *p, const ElfW(Shdr) * table,
                         const ElfW(Shdr) * names, void *library, void *own)
{
    const ElfW(Sym) *s = (const ElfW(Sym) *)(p->map + table->sh_offset);
    const char *text = p->map + names->sh_offset;
    int hooked = 0;

    for (size_t n = table->sh_size / sizeof *s; n; n--, s++) {
        const char *name = text + s->st_name;
        void *from, *to;
        uintptr_t real;

        if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || !s->st_value || s->st_name >= names->sh_size ||
            strncmp(name, "_cu", 3) != 0)
            continue;
        from = dlsym(library, name);
        to = dlsym(own, strcmp(name, "_cudaLaunchKernelEx") ? name + 1 : "cudaLaunchKernelExC");
        real = from && to ? jumps_to((uintptr_t)from) : 0;
        if (from && to && !real && s->st_size >= sizeof jump + sizeof to)
            real = (uintptr_t)from;
        if (real) {
            redirect(real, to);
            hooked++;
        }
    }
    return hooked;
}

/* Redirects the library at `path`, which the program has loaded or will load, to this runtime.
 * Returns the number of redirected calls. */
__attribute__((visibility("default"))) int cutegen_hook_library(const char *path);
int cutegen_hook_library(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY), *own = NULL;
    struct hooked_image p = {0};
    const ElfW(Shdr) * s;
    int hooked = 0;
    Dl_info info;

    if (dladdr((void *)&cutegen_hook_library, &info))
        own = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!library || !own || !map_file(&p, path))
        return 0;
    s = sections_of(&p);
    for (int i = 0; s && i < ((const ElfW(Ehdr) *)p.map)->e_shnum; i++)
        if (is_table(&p, s, i, SHT_DYNSYM))
            hooked += hook_exported(&p, &s[i], &s[s[i].sh_link], library, own);
    munmap((void *)(uintptr_t)p.map, p.bytes);
    return hooked;
}
#endif
