/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simtc_main.c - cutegen-simtc: translate and compile kernels for the device.
 *
 *   cutegen-simtc --ptx FILE --kernel NAME... [--cc CC] [--cache DIR | --so FILE]
 *                 [--lanes N] [--c FILE]
 *
 * --block X,Y,Z after a --kernel, as often as wanted: the blocks it will be launched with, so that
 * it is not translated for others. Without, for all.
 *
 * Prints one JSON line: {"so", "cached", "ms", "instructions"}, or {"error":
 * {"text", "hint", "kind", and where an instruction was refused "kernel",
 * "instruction", "ptx_line", "file", "line"}} and exit status 1.
 */
#include "simt/emit/abi.h"
#include "simt/emit/translate.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/vault.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PTX = 256 << 20, MAX_KERNELS = 1024 };

struct args {
    const char *ptx, *c_out;
    const char *kernel[MAX_KERNELS];
    unsigned forms[MAX_KERNELS];
    size_t kernels;
    struct translate_options opt;
};

static bool read_args(int argc, char **argv, struct args *x, struct error *err)
{
    static const struct option longs[] = {{"ptx", 1, NULL, 'p'},      {"kernel", 1, NULL, 'k'},
                                          {"cc", 1, NULL, 'c'},       {"cache", 1, NULL, 'd'},
                                          {"lanes", 1, NULL, 'l'},    {"c", 1, NULL, 'o'},
                                          {"no-cache", 0, NULL, 'n'}, {"block", 1, NULL, 'b'},
                                          {"so", 1, NULL, 's'},       {NULL, 0, NULL, 0}};
    u32 block[3];
    x->opt.forms = x->forms;
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 'p':
            x->ptx = optarg;
            break;
        case 'k':
            if (x->kernels < MAX_KERNELS)
                x->kernel[x->kernels++] = optarg;
            break;
        case 'c':
            x->opt.cc = optarg;
            break;
        case 'd':
            x->opt.cache_dir = optarg;
            break;
        case 's':
            x->opt.so_path = optarg;
            break;
        case 'l':
            x->opt.lanes = (int)strtol(optarg, NULL, 10);
            break;
        case 'o':
            x->c_out = optarg;
            break;
        case 'n':
            x->opt.no_cache = true;
            break;
        case 'b':
            if (sscanf(optarg, "%u,%u,%u", &block[0], &block[1], &block[2]) != 3 || !x->kernels)
                return error_set(err, ERROR_USE, "--block is X,Y,Z, after a --kernel");
            x->forms[x->kernels - 1] |= sw_form_for(block);
            break;
        default:
            return error_set(err, ERROR_USE, "wrong option");
        }
    }
    if (!x->ptx)
        return error_set(err, ERROR_USE, "--ptx FILE is missing");
    if (x->opt.lanes && x->opt.lanes != 4 && x->opt.lanes != 8 && x->opt.lanes != 16)
        return error_set(err, ERROR_USE, "--lanes is 4, 8 or 16");
    return true;
}

static bool work(struct args *x, struct arena *a, struct simt_built *built, struct error *err)
{
    struct text ptx;
    if (!file_read(x->ptx, MAX_PTX, a, &ptx, err))
        return false;
    const char *const *names = x->kernel;
    const char **all = NULL;
    size_t n = x->kernels;
    if (!n) {
        if (!simt_kernel_names(ptx, a, &all, &n, err))
            return false;
        names = all;
        x->opt.forms = NULL;
    }
    if (x->c_out) {
        struct text c;
        int instructions;
        struct translate_options o = x->opt;
        return simt_translate(ptx, names, n, &o, a, &c, &instructions, err) &&
               file_write(x->c_out, c, err);
    }
    return simt_compile(ptx, names, n, &x->opt, a, built, err);
}

static json_t *error_json(const struct error *err, const struct simt_refusal *r)
{
    json_t *j = json_object();
    json_object_set_new(j, "text", json_from_string(err->text));
    json_object_set_new(j, "hint", json_from_string(err->hint));
    json_object_set_new(j, "kind",
                        json_from_string(err->kind == ERROR_JUDGED ? "kernel"
                                         : err->kind == ERROR_USE  ? "use"
                                                                   : "machine"));
    if (!r->kernel)
        return j;
    json_object_set_new(j, "kernel", json_from_string(r->kernel));
    json_object_set_new(j, "instruction", json_from_string(r->instruction));
    json_object_set_new(j, "ptx_line", json_integer(r->ptx_line));
    if (r->line > 0) {
        json_object_set_new(j, "line", json_integer(r->line));
        json_object_set_new(j, "file", json_from_string(r->file ? r->file : "?"));
    }
    return j;
}

int main(int argc, char **argv)
{
    struct args x = {0};
    struct error err = {0};
    struct arena *a = arena_new();
    struct simt_built built = {0};
    struct simt_refusal refusal = {0};
    vault_private();
    x.opt.refusal = &refusal;
    bool ok = read_args(argc, argv, &x, &err) && work(&x, a, &built, &err);
    json_t *j;
    if (ok)
        j = json_pack("{s:s, s:b, s:i, s:i}", "so", built.so_path ? built.so_path : "", "cached",
                      built.cached, "ms", built.ms, "instructions", built.instructions);
    else
        j = json_pack("{s:o}", "error", error_json(&err, &refusal));
    puts(json_line(j, a));
    json_decref(j);
    arena_free(a);
    return ok ? 0 : 1;
}
