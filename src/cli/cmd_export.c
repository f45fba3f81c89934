/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_export.c - `export`, `verify`: write the judged kernel as files to use, and check such files.
 */
#include "cli/cmd.h"
#include "loop/loop.h"

#include <string.h>

/* A user who names a device or sizes wants the kernel judged there. */
static bool wants_judging(const struct cli *cli)
{
    static const char *const keys[] = {"device", "set", "scale", "accept"};
    const char *const *said = config_said(cli->config);

    for (; *said; said++)
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
            if (!strcmp(*said, keys[i]))
                return true;
    return false;
}

static bool read_options(const struct cli *cli, struct export_options *out, struct error *err)
{
    const char *gradients = flag_get(cli, "gradients");

    *out = (struct export_options){.dir = flag_get(cli, "output"),
                                   .layout =
                                       flag_get(cli, "wheel") ? "wheel" : flag_get(cli, "layout"),
                                   .fallback = flag_get(cli, "fallback") != NULL,
                                   .no_gradients = gradients && !strcmp(gradients, "none"),
                                   .ptx = flag_get(cli, "ptx") != NULL,
                                   .force = flag_get(cli, "force") != NULL,
                                   .judge = wants_judging(cli)};
    if (gradients && !*gradients) {
        error_set(err, ERROR_USE, "--gradients wants reference, none or the name of a run");
        return error_hint(err, "reference: those of Model, computed anew; none: an error; "
                               "RUN: the kernel of a run with --backward");
    }
    if (gradients && !out->no_gradients && strcmp(gradients, "reference") != 0)
        out->backward = gradients;
    return true;
}

static void print_export(const struct cli *cli, const struct export_summary *s)
{
    if (cli->json) {
        print_json(json_pack(
            "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "run",
            json_from_string(s->run_id), "accepted", json_from_string(s->accepted), "dir",
            json_from_string(s->dir), "module", json_from_string(s->module_path), "source",
            json_from_string(s->source_path), "record", json_from_string(s->record_path), "wheel",
            json_from_string(s->wheel_path), "code", json_from_string(s->code_hash), "scaled",
            json_from_string(s->scaled), "left_out", json_from_string(s->left_out), "backward",
            json_from_string(s->backward_id)));
        return;
    }
    if (s->wheel_path)
        printf("wheel     %s   pip install it\n", s->wheel_path);
    else
        printf("module    %s   drop-in ModelNew for PyTorch\n", s->module_path);
    printf("judged    %s on %s, code %.16s...\n", s->run_id, s->device, s->code_hash);
    if (s->backward_id)
        printf("gradients %s, code %.16s...\n", s->backward_id, s->backward_hash);
    if (!strcmp(s->accepted, "no"))
        printf("NOT ACCEPTED: exported because of --force; the record says so\n");
    if (s->scaled)
        printf("reduced   %s: for these sizes only; judge the full ones on a GPU:\n"
               "          cutegen export %s --device cuda:0\n",
               s->scaled, s->run_id);
    if (s->left_out)
        printf(
            "left out  %s: judged, but the code that was built there is another, reference.py is "
            "another function there (its constants are the main shape's), or another call of "
            "these sizes is exported\n",
            s->left_out);
    if (s->record_path)
        printf("record    %s\n", s->record_path);
}

bool cmd_export(struct cli *cli, int *code, struct error *err)
{
    struct export_summary s = {0};
    struct export_options options;
    struct progress *progress = NULL;
    bool ok;

    (void)code;
    if (!read_options(cli, &options, err))
        return false;
    if (options.judge)
        progress = progress_new_live(cli);
    ok = loop_export(&cli->settings, cli->words[0], &options, progress, cli->a, &s, err);
    progress_end(progress);
    if (ok)
        print_export(cli, &s);
    return ok;
}

/* ---- verify ----------------------------------------------------------------------- */

static json_t *verify_json(const struct verify_summary *s)
{
    static const char *const kinds[] = {"same", "differs", "not here"};
    json_t *steps = json_array();

    for (int i = 0; i < s->count; i++)
        json_array_append_new(steps, json_pack("{s:s, s:s, s:o}", "step", s->steps[i].name,
                                               "result", kinds[s->steps[i].kind], "text",
                                               json_from_string(s->steps[i].text)));
    return json_pack("{s:b, s:o, s:o, s:o, s:o}", "ok", (int)s->ok, "run",
                     json_from_string(s->run_id), "code", json_from_string(s->code_hash), "steps",
                     steps, "backward", s->backward ? verify_json(s->backward) : json_null());
}

static void print_steps(const struct verify_summary *s)
{
    static const char *const marks[] = {"ok", "DIFFERS", "-"};

    for (int i = 0; i < s->count; i++) {
        printf("%-9s %-8s ", s->steps[i].name, marks[s->steps[i].kind]);
        print_visible(stdout, s->steps[i].text, strlen(s->steps[i].text));
        putchar('\n');
    }
    if (s->backward) {
        printf("gradients\n");
        print_steps(s->backward);
    }
}

bool cmd_verify(struct cli *cli, int *code, struct error *err)
{
    struct progress *progress = progress_new_live(cli);
    const char *const *said = config_said(cli->config);
    struct verify_summary s = {0};
    bool named = false, ok;

    for (; *said; said++)
        named = named || !strcmp(*said, "device");
    ok = loop_verify(&cli->settings, cli->words[0], named, progress, cli->a, &s, err);
    progress_end(progress);
    if (!ok)
        return false;
    *code = s.ok ? EXIT_DONE : s.unknown ? EXIT_MACHINE : EXIT_JUDGED;
    if (cli->json) {
        print_json(verify_json(&s));
        return true;
    }
    print_steps(&s);
    puts(s.ok        ? "verified"
         : s.unknown ? "NOT VERIFIED: this machine could neither build the code again nor judge it"
                     : "NOT VERIFIED");
    return true;
}
