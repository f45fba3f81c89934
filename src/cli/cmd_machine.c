/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_machine.c - `doctor`, `config`, `help`, `version`. */
#include "base/json.h"
#include "cli/cmd.h"
#include "stage/stage.h"

#include <string.h>

/* ---- doctor ------------------------------------------------------------------ */

static const struct {
    const char *name;
    enum paint paint;
} states[] = {
    {"ok", PAINT_GOOD}, {"missing", PAINT_DIM}, {"none", PAINT_DIM}, {"broken", PAINT_BAD}};

static void print_check(const struct cli *cli, const json_t *check)
{
    const char *name = json_string_or(check, "state", "broken");
    const char *todo = json_string_or(check, "todo", "");
    size_t i = 0;

    while (i + 1 < ARRAY_LEN(states) && strcmp(states[i].name, name))
        i++;
    print_fit(28, "%s%-8s%s %-18s %s", paint_on(cli, states[i].paint), states[i].name,
              paint_off(cli), json_string_or(check, "name", "?"),
              json_string_or(check, "text", ""));
    if (i > 0 && *todo)
        print_fit(30, "%-8s %-18s   %s", "", "", todo);
}

bool cmd_doctor(struct cli *cli, int *code, struct error *err)
{
    json_t *report = NULL, *check;
    size_t i;

    if (!stage_doctor(&cli->settings, cli->a, &report, err))
        return false;
    *code = json_bool_or(report, "ok", false) ? EXIT_DONE : EXIT_MACHINE;
    if (cli->json) {
        print_json(report);
        return true;
    }
    json_array_foreach(json_object_get(report, "checks"), i, check) print_check(cli, check);
    printf("%s\n", json_string_or(report, "summary", ""));
    json_decref(report);
    return true;
}

/* ---- peaks ------------------------------------------------------------------- */

static void print_peaks(const json_t *report)
{
    static const struct {
        const char *key, *label, *unit;
    } rows[] = {
        {"read_gbps", "memory, read", "GB/s"},
        {"write_gbps", "memory, write", "GB/s"},
        {"mixed_gbps", "memory, half and half", "GB/s"},
        {"l2_gbps", "L2, read", "GB/s"},
        {"fp32_tflops", "fp32", "TFLOPS"},
        {"fp64_tflops", "fp64", "TFLOPS"},
        {"tensor_sync_f16_tflops", "tensor, f16 (mma.sync)", "TFLOPS"},
        {"tensor_f16_tflops", "tensor, f16", "TFLOPS"},
        {"tensor_bf16_tflops", "tensor, bf16", "TFLOPS"},
        {"tensor_tf32_tflops", "tensor, tf32", "TFLOPS"},
        {"launch_us", "one launch in a graph", "us"},
    };
    const char *source = json_string_or(report, "source", "none"), *key;
    const char *gpu = json_string_or(report, "gpu", "?");
    json_t *figures = json_object_get(report, "figures"), *bad;

    if (!strcmp(source, "measured"))
        printf("%s, measured %s\n", gpu, json_string_or(report, "measured", "?"));
    else if (!strcmp(source, "table"))
        printf("%s, from the table of GPUs (src/eval/gpus.def); not measured here\n", gpu);
    else
        printf("%s is not in the table of GPUs and was not measured; it has no roofline\n", gpu);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double v = json_double_or(figures, rows[i].key, 0);

        if (v > 0)
            printf("  %-24s %10.4g %s\n", rows[i].label, v, rows[i].unit);
    }
    json_object_foreach(json_object_get(report, "implausible"), key, bad)
        printf("  %s: %.4g is implausible and is not used\n", key, json_number_value(bad));
}

bool cmd_peaks(struct cli *cli, int *code, struct error *err)
{
    json_t *report = NULL;

    (void)code;
    if (!stage_peaks(&cli->settings, flag_get(cli, "show") == NULL, cli->a, &report, err))
        return false;
    if (cli->json) {
        print_json(report);
        return true;
    }
    print_peaks(report);
    json_decref(report);
    return true;
}

/* ---- config ------------------------------------------------------------------ */

bool cmd_config(struct cli *cli, int *code, struct error *err)
{
    json_t *all = json_object();

    (void)code;
    (void)err;
    for (size_t i = 0; i < config_key_count; i++) {
        const char *name = config_keys[i].name;
        const char *value = config_get(cli->config, name), *where = config_where(cli->config, name);

        if (cli->json)
            json_object_set_new(all, name,
                                json_pack("{s:o, s:o}", "value", json_from_string(value), "from",
                                          json_from_string(where)));
        else
            print_fit(19, "%-16s = %-28s ; %s", name, value, where);
    }
    if (cli->json)
        print_json(json_incref(all));
    json_decref(all);
    return true;
}

/* ---- help, version ----------------------------------------------------------- */

bool cmd_help(struct cli *cli, int *code, struct error *err)
{
    const struct command *c;

    (void)code;
    if (!cli->word_count) {
        help_all(stdout);
        return true;
    }
    c = command_find(cli->words[0], cli->words[1]);
    if (!c) { /* "edit" alone: the first command with that prefix */
        for (c = commands; c->name; c++)
            if (!strncmp(c->name, cli->words[0], strlen(cli->words[0])) &&
                c->name[strlen(cli->words[0])] == ' ')
                break;
    }
    if (!c->name) {
        error_set(err, ERROR_USE, "cutegen has no command '%s'", cli->words[0]);
        return error_hint(err, "`cutegen help` lists them all");
    }
    help_command(c, stdout);
    return true;
}

bool cmd_version(struct cli *cli, int *code, struct error *err)
{
    (void)code;
    (void)err;
    if (cli->json)
        print_json(json_pack("{s:s}", "version", CUTEGEN_VERSION));
    else
        printf("cutegen %s\n", CUTEGEN_VERSION);
    return true;
}
