/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile.c - translated C to a cached shared object.
 *
 * Hides: which compiler and flags, what the host's vectors are, the cache.
 */
#include "simt/emit/abi.h"
#include "simt/emit/embed.h"
#include "simt/emit/translate.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TRANSLATOR_VERSION = 3,
    TINY_KERNEL = 64,
    SMALL_KERNEL = 100,
    LONG_KERNEL = 600,
    BIG_KERNEL = 20000,
    MAX_FLAGS = 40,
    DEADLINE_MS = 600000
};

#if defined(__x86_64__)
static bool has_avx512(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#endif

static int host_lanes(void)
{
#if defined(__x86_64__)
    if (has_avx512())
        return 16;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 8;
#endif
    return 4;
}

static void machine_flags(int lanes, const char **flag, size_t *n)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    /* Sixteen lanes may be asked for where they are not the machine's own. */
    if (lanes == 16 && has_avx512()) {
        flag[(*n)++] = "-mavx512f";
        flag[(*n)++] = "-mavx512dq";
        flag[(*n)++] = "-mavx512vl";
        flag[(*n)++] = "-mavx512bw";
        flag[(*n)++] = "-mprefer-vector-width=512";
    }
    if (__builtin_cpu_supports("avx2")) {
        flag[(*n)++] = "-mavx2";
        flag[(*n)++] = "-mf16c"; /* every machine with AVX2 has it */
    }
    if (__builtin_cpu_supports("fma"))
        flag[(*n)++] = "-mfma";
    if (__builtin_cpu_supports("popcnt"))
        flag[(*n)++] = "-mpopcnt";
#else
    (void)lanes;
    (void)flag;
    (void)n;
#endif
}

static char *find_compiler(const struct translate_options *opt, struct arena *a, struct error *err)
{
    const char *wanted = opt->cc ? opt->cc : getenv("CUTEGEN_CC");
    static const char *const names[] = {"gcc", "cc", "clang"};
    char *path = NULL;
    if (wanted && *wanted)
        path = path_find_program(a, wanted);
    for (size_t i = 0; i < ARRAY_LEN(names) && !path && !wanted; i++)
        path = path_find_program(a, names[i]);
    if (!path) {
        error_set(err, ERROR_MACHINE, "no C compiler: %s",
                  wanted ? wanted : "gcc, cc and clang are not on $PATH");
        error_hint(err, "install gcc, or name a compiler with CUTEGEN_CC");
    }
    return path;
}

/* C text that a kernel has anyway, and per plain instruction. */
enum { USUAL_BYTES = 12500, USUAL_BYTES_EACH = 60 };

/* Calls and branches take more C than arithmetic does, and gcc the longer. */
static bool much_text(struct text source, int instructions)
{
    const char *own = memmem(source.data, source.len, SIMT_OWN_TEXT, strlen(SIMT_OWN_TEXT));
    size_t bytes = own ? (size_t)(source.data + source.len - own) : source.len;
    return bytes > USUAL_BYTES + USUAL_BYTES_EACH * (size_t)instructions;
}

/* A block of ten instructions or fewer, on average, where lanes may wait (vec_lanes.h). */
static bool branchy(struct text source, int instructions)
{
    static const char head[] = "\nHEAD(";
    const char *p = source.data, *end = source.data + source.len;
    int blocks = 0;
    while ((p = memmem(p, (size_t)(end - p), head, sizeof head - 1)) != NULL) {
        p += sizeof head - 1;
        blocks++;
    }
    return blocks * 10 >= instructions;
}

/* -Og takes two thirds of -O1's time. The code is as fast but for small loops of arithmetic and
 * long products, which -O1 compiles soon enough; a long kernel of short blocks is neither.
 * With vectors of four lanes there are more turns of each loop, and all but the branchiest kernels
 * are worth it. */
static const char *level(struct text source, int instructions, int lanes)
{
    if (instructions > BIG_KERNEL)
        return "-O0";
    if (instructions > LONG_KERNEL)
        return branchy(source, instructions) ? "-Og" : "-O1";
    if (instructions <= TINY_KERNEL)
        return "-O1";
    return lanes == 4 && !much_text(source, instructions) ? "-O1" : "-Og";
}

static size_t compiler_flags(struct text source, int lanes, int instructions, const char **flag)
{
    size_t n = 0;
    flag[n++] = level(source, instructions, lanes);
    /* Chunks of four lanes wait for their own results; long products have their order. */
    if (lanes == 4 && instructions <= LONG_KERNEL && strcmp(flag[0], "-O1") == 0) {
        flag[n++] = "-fschedule-insns";
        flag[n++] = "-DSCHEDULED";
    }
    bool quick = strcmp(flag[0], "-O1") != 0;
    if (quick)
        flag[n++] = "-DQUICK";
    /* An eighth of gcc's time at -Og, and no more instructions worth mention. */
    if (quick) {
        flag[n++] = "-fno-cprop-registers";
        flag[n++] = "-fdisable-rtl-postreload";
    }
    /* Registers are given out for the whole function at once. */
    if (quick || instructions > LONG_KERNEL) {
        flag[n++] = "-fira-region=one";
        flag[n++] = "-fira-algorithm=priority";
    }
    /* -Og would keep both vectors of 64-bit lanes in memory. */
    flag[n++] = "-ftree-sra";
    /* Without it gcc leaves the upper vector halves dirty over calls. */
    flag[n++] = "-fexpensive-optimizations";
    /* An eighth of gcc's time, and the code has next to nothing for it. */
    flag[n++] = "-fno-tree-dominator-opts";
    /* Which bits of a value are known: a tenth of it where values have 64 bits. */
    flag[n++] = "-fno-tree-bit-ccp";
    /* Half of gcc's time, for a few instructions less. */
    if (instructions > SMALL_KERNEL)
        flag[n++] = "-fdisable-rtl-combine";
    static const char *const always[] = {"-std=gnu17",
                                         "-w",
                                         "-fPIC",
                                         "-shared",
                                         "-nostdlib",
                                         "-ffp-contract=off",
                                         "-fno-math-errno",
                                         "-fno-strict-aliasing",
                                         "-fno-trapping-math",
                                         "-fwrapv",
                                         "-fno-stack-protector",
                                         "-fstack-usage",
                                         "-fvisibility=default"};
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        flag[n++] = always[i];
    machine_flags(lanes, flag, &n);
    return n;
}

static void cache_key(struct text source, const char *cc, const char *const *flag, size_t flags,
                      char key[65])
{
    struct hash h = hash_init();
    char version[64];
    snprintf(version, sizeof version, "simt %d abi %d", TRANSLATOR_VERSION, SIMT_ABI_VERSION);
    hash_add_text(&h, text_of(version));
    hash_add_text(&h, text_of(cc));
    for (size_t i = 0; i < flags; i++)
        hash_add_text(&h, text_of(flag[i]));
    hash_add_text(&h, source);
    hash_hex(&h, key);
}

static bool only_gcc(const char *flag)
{
    static const char *const flags[] = {"-fexpensive-optimizations", "-fschedule-insns",
                                        "-fno-tree-dominator-opts",  "-fno-tree-bit-ccp",
                                        "-fdisable-rtl-combine",     "-fdisable-rtl-postreload",
                                        "-fno-cprop-registers",      "-ftree-sra",
                                        "-fira-region=one",          "-fira-algorithm=priority"};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (strcmp(flag, flags[i]) == 0)
            return true;
    return false;
}

/* ---- the frame ---- */

/* The largest of "file:line:function\tbytes\tstatic" lines. */
static uint64_t largest_frame(struct text t)
{
    uint64_t most = 0;
    for (const char *p = t.data; p && (p = strchr(p, '\t')) != NULL; p = strchr(p, '\n')) {
        uint64_t bytes = strtoull(p + 1, NULL, 10);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* What -fstack-usage said, in the file that the compiler put beside its output; 0: nothing. */
static uint64_t frame_bytes(const char *temp, struct arena *a)
{
    const char *dot = strrchr(temp, '.');
    char *names[] = {arena_printf(a, "%s--.su", temp),                     /* gcc */
                     arena_printf(a, "%.*s.su", (int)(dot - temp), temp)}; /* clang */
    uint64_t bytes = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct error err = {0};
        struct text t;
        if (file_exists(names[i]) && file_read(names[i], 16 << 20, a, &t, &err))
            bytes = largest_frame(t);
        unlink(names[i]);
    }
    return bytes;
}

/* The device sizes its stacks by it (abi.h: stack_mark). */
static bool write_frame(const char *temp, uint64_t bytes, struct arena *a, struct error *err)
{
    const uint64_t mark = SW_STACK_MARK;
    struct text t;
    if (!file_read(temp, (size_t)1 << 30, a, &t, err))
        return false;
    char *at = memmem(t.data, t.len, &mark, sizeof mark);
    if (!at || (size_t)(t.data + t.len - at) < sizeof mark + sizeof bytes)
        return true; /* then it stays unknown */
    FILE *f = fopen(temp, "r+b");
    bool ok = f && fseek(f, (long)(at - t.data) + (long)sizeof mark, SEEK_SET) == 0 &&
              fwrite(&bytes, sizeof bytes, 1, f) == 1;
    if (f)
        ok &= fclose(f) == 0;
    return ok || error_set(err, ERROR_MACHINE, "cannot write to %s", temp);
}

/* `crashed`: the compiler itself broke, not over what it was given. */
static bool run_compiler(const char *cc, const char *const *flag, size_t flags, struct text source,
                         const char *so, int deadline_ms, struct arena *a, bool *crashed,
                         struct error *err)
{
    const char *argv[MAX_FLAGS + 12];
    size_t n = 0;
    argv[n++] = cc;
    bool clang = strstr(path_base(cc), "clang") != NULL;
    for (size_t i = 0; i < flags; i++)
        if (!clang || !only_gcc(flag[i]))
            argv[n++] = flag[i];
    char *temp = arena_printf(a, "%s.%d.tmp", so, (int)getpid());
    const char *tail[] = {"-o", temp, "-x", "c", "-"};
    for (size_t i = 0; i < ARRAY_LEN(tail); i++)
        argv[n++] = tail[i];
    argv[n] = NULL;
    static const char *const plain[] = {"LC_ALL=C", NULL};
    struct proc_spec spec = {.argv = argv,
                             .env = plain,
                             .input = source,
                             .merge_stderr = true,
                             .deadline_ms = deadline_ms ? deadline_ms : DEADLINE_MS,
                             .output_limit = 64 << 10};
    struct proc_result r;
    if (!proc_run(&spec, a, &r, err))
        return error_add(err, "compiling a translated kernel with %s", cc);
    uint64_t frame = frame_bytes(temp, a);
    if (r.end != PROC_EXITED || r.code != 0) {
        unlink(temp);
        *crashed = strstr(r.out.data, "internal compiler error") != NULL; /* gcc's words */
        return error_set(err, ERROR_MACHINE, "%s could not compile a translated kernel: %s: %.600s",
                         cc, proc_end_text(&r, a), r.out.data);
    }
    if (frame && !write_frame(temp, frame, a, err)) {
        unlink(temp);
        return false;
    }
    if (rename(temp, so) != 0) {
        unlink(temp);
        return error_set(err, ERROR_MACHINE, "cannot put %s into the cache", so);
    }
    return true;
}

/* gcc 12 breaks on some of this code in its optimiser: then with less of it, or none. */
static bool compile_source(const char *cc, const char **flag, size_t flags, struct text source,
                           const char *so, int deadline_ms, struct arena *a, struct error *err)
{
    struct error first = {0};
    bool crashed = false;
    if (run_compiler(cc, flag, flags, source, so, deadline_ms, a, &crashed, &first))
        return true;
    if (crashed && flags < MAX_FLAGS) {
        struct error second = {0};
        flag[flags] = "-fno-tree-loop-im";
        if (run_compiler(cc, flag, flags + 1, source, so, deadline_ms, a, &crashed, &second))
            return true;
        flag[0] = "-O0";
        return run_compiler(cc, flag, flags, source, so, deadline_ms, a, &crashed, err);
    }
    *err = first;
    return false;
}

static bool cache_path(const struct translate_options *o, struct text source, const char *cc,
                       const char *const *flag, size_t flags, struct arena *a, char **out,
                       struct error *err)
{
    char key[65], *dir = NULL;
    if (o->cache_dir)
        dir = arena_strdup(a, o->cache_dir);
    else if (!home_cache("simt", a, &dir, err))
        return false;
    if (!dir_make(dir, err))
        return false;
    cache_key(source, cc, flag, flags, key);
    *out = arena_printf(a, "%s/%s.so", dir, key);
    return true;
}

bool simt_compile(struct text ptx, const char *const *kernels, size_t n,
                  const struct translate_options *opt, struct arena *a, struct simt_built *out,
                  struct error *err)
{
    int64_t start = clock_ms();
    struct translate_options o = *opt;
    if (!o.lanes)
        o.lanes = host_lanes();
    struct text source;
    int instructions = 0;
    if (!simt_translate(ptx, kernels, n, &o, a, &source, &instructions, err))
        return false;
    char *cc = find_compiler(&o, a, err);
    if (!cc)
        return false;
    const char *flag[MAX_FLAGS];
    size_t flags = compiler_flags(source, o.lanes, instructions, flag);
    *out = (struct simt_built){.instructions = instructions};
    if (o.so_path)
        out->so_path = arena_strdup(a, o.so_path);
    else if (!cache_path(&o, source, cc, flag, flags, a, &out->so_path, err))
        return false;
    out->cached = !o.so_path && !o.no_cache && file_exists(out->so_path);
    if (!out->cached &&
        !compile_source(cc, flag, flags, source, out->so_path, o.deadline_ms, a, err))
        return false;
    out->ms = (int)(clock_ms() - start);
    return true;
}
