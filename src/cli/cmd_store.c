/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_store.c - `store copy` and `store check`: stores as a whole. */
#include "base/fs.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "store/copy.h"
#include "store/store.h"

#include <string.h>

/* A folder of runs, or the address of a server. */
static bool open_place(struct cli *cli, const char *place, enum store_mode mode, struct store **out,
                       struct error *err)
{
    bool url = !strncmp(place, "postgres://", 11) || !strncmp(place, "postgresql://", 13);

    return url ? store_open(cli->settings.runs_dir, place, mode, out, err)
               : store_open(place, NULL, mode, out, err);
}

bool cmd_store_copy(struct cli *cli, int *code, struct error *err)
{
    struct store *from = NULL, *to = NULL;
    struct store_copied done = {0};
    bool ok;

    (void)code;
    if (!strcmp(cli->words[0], cli->words[1]))
        return error_set(err, ERROR_USE, "both stores are the same: %s", cli->words[0]);
    ok = open_place(cli, cli->words[0], STORE_READ, &from, err) &&
         open_place(cli, cli->words[1], STORE_WRITE, &to, err) && store_copy(from, to, &done, err);
    store_close(from);
    store_close(to);
    if (ok && cli->json)
        print_json(json_pack("{s:I, s:I}", "runs", (json_int_t)done.runs, "known",
                             (json_int_t)done.known));
    else if (ok)
        printf("%lld runs copied, %lld were there already\n", (long long)done.runs,
               (long long)done.known);
    return ok;
}

static void print_faults(const struct cli *cli, const struct store_faults *f)
{
    size_t shown = f->count < ARRAY_LEN(f->first) ? f->count : ARRAY_LEN(f->first);
    json_t *list = json_array();

    for (size_t i = 0; i < shown; i++) {
        json_array_append_new(list, json_from_string(f->first[i]));
        if (!cli->json)
            printf("%s\n", f->first[i]);
    }
    if (cli->json)
        print_json(json_pack("{s:I, s:I, s:I, s:O}", "runs", (json_int_t)f->runs, "texts",
                             (json_int_t)f->texts, "faults", (json_int_t)f->count, "first", list));
    else
        printf("%lld runs, %lld texts: %zu fault%s\n", (long long)f->runs, (long long)f->texts,
               f->count, f->count == 1 ? "" : "s");
    json_decref(list);
}

bool cmd_store_check(struct cli *cli, int *code, struct error *err)
{
    struct store_faults faults;
    struct store *s = NULL;
    bool ok = store_open(cli->settings.runs_dir, cli->settings.store_url, STORE_READ, &s, err) &&
              store_check(s, cli->a, &faults, err);

    store_close(s);
    if (!ok)
        return false;
    print_faults(cli, &faults);
    *code = faults.count ? EXIT_JUDGED : EXIT_DONE;
    return true;
}
