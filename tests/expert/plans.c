/*
 * plans.c - what the plans of kernels ask of the GPUs that simt stands in for.
 *
 *     plans ARCH CARD... (DESCRIPTION.json KERNEL.cu...)...
 *
 * Each plan is compiled once and run for each card, as the judge would: it must be accepted, and no
 * launch may have more shared memory, threads or blocks in a cluster than the card. Prints a line
 * for each that does; exit 1: there were some.
 */
#include "base/error.h"
#include "base/fs.h"
#include "base/json.h"
#include "eval/devices.h"
#include "toolchain/builder.h"
#include "toolchain/plan.h"
#include "toolchain/tools.h"

#include <stdio.h>
#include <string.h>

enum { MAX_CARDS = 8, MAX_THREADS = 1024 };

struct plans {
    struct arena *a;
    struct builder *builder;
    struct device cards[MAX_CARDS];
    size_t card_count;
    json_t *description;
    char *dir;
    int checked, bad;
};

static int complain(const struct error *err)
{
    fprintf(stderr, "plans: %s\n%s\n", err->text, err->hint);
    return 2;
}

static int64_t product(const json_t *list)
{
    int64_t n = 1;

    for (size_t i = 0; i < json_array_size(list); i++)
        n *= json_integer_value(json_array_get(list, i));
    return n;
}

static void report(struct plans *p, const char *kernel, const struct device *d, const char *why)
{
    printf("%s as %s: %s\n", kernel, d->models, why);
    p->bad++;
}

static void check_launches(struct plans *p, const char *kernel, const struct device *d,
                           const json_t *launches)
{
    const json_t *op;
    size_t i;

    json_array_foreach(json_object_get(launches, "ops"), i, op)
    {
        int64_t smem = json_int_or(op, "smem", 0), threads = product(json_object_get(op, "block"));
        int64_t blocks = product(json_object_get(op, "cluster"));

        if (strcmp(json_string_or(op, "op", ""), "launch") != 0)
            continue;
        if (smem > d->smem_block_bytes || threads > MAX_THREADS || blocks > d->cluster_blocks)
            report(p, kernel, d,
                   arena_printf(p->a, "%s: %lld bytes, %lld threads, cluster of %lld",
                                json_string_or(op, "kernel", ""), (long long)smem,
                                (long long)threads, (long long)blocks));
    }
}

static bool check_kernel(struct plans *p, const char *path, struct error *err)
{
    struct task none = {.description = p->description};
    struct verdict built = {0};
    struct text source;
    const char *ptx;

    if (!file_read(path, 4 << 20, p->a, &source, err) ||
        !plan_compile(p->builder, source, path_base(path), p->dir, p->a, &ptx, &built, err))
        return false;
    for (size_t i = 0; i < p->card_count; i++) {
        json_t *request = plan_request(&none, &p->cards[i]), *launches = NULL;
        struct verdict v = built; /* what one card refuses another may take */
        bool ok = true;

        json_object_set(request, "inputs", json_object_get(p->description, "inputs"));
        json_object_set(request, "outputs", json_object_get(p->description, "outputs"));
        if (v.kind == VERDICT_PASS)
            ok = plan_run(ptx, request, source, path_base(path), p->a, &launches, &v, err);
        json_decref(request);
        if (!ok)
            return false;
        if (v.kind != VERDICT_PASS)
            report(p, path_base(path), &p->cards[i], v.summary);
        else
            check_launches(p, path_base(path), &p->cards[i], launches);
        json_decref(launches);
        p->checked++;
    }
    return true;
}

static bool take(struct plans *p, const char *path, struct error *err)
{
    struct text text;

    if (!strstr(path, ".json"))
        return check_kernel(p, path, err);
    json_decref(p->description);
    p->description = NULL;
    return file_read(path, 1 << 20, p->a, &text, err) &&
           json_parse(text, path, &p->description, err);
}

int main(int argc, char **argv)
{
    struct plans p = {.a = arena_new()};
    struct error err = {0};
    struct tools tools;
    bool ok = true;
    int i = 2;

    if (argc < 4)
        return fprintf(stderr, "usage: plans ARCH CARD... (DESCRIPTION.json KERNEL.cu...)...\n"), 2;
    for (; i < argc && !strchr(argv[i], '.') && p.card_count < MAX_CARDS; i++)
        if (!devices_find("simt", argv[i], argv[1], p.a, &p.cards[p.card_count++], &err))
            return complain(&err);
    if (!tools_find(&(struct tools_config){0}, p.a, &tools, &err) ||
        !dir_temp("plans", p.a, &p.dir, &err) ||
        !builder_start(&(struct builder_config){.tools = &tools}, &p.builder, &err))
        return complain(&err);
    for (; i < argc && ok; i++)
        ok = take(&p, argv[i], &err);
    builder_stop(p.builder);
    json_decref(p.description);
    dir_remove(p.dir, &(struct error){0});
    printf("sm_%s: %d plans, %d ask for too much\n", argv[1], p.checked, p.bad);
    arena_free(p.a);
    if (!ok)
        return complain(&err);
    return p.bad || !p.checked;
}
