/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_store.c - `store copy`, `check`, `prune` and `upgrade`: stores as a whole. */
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "cli/cmd.h"
#include "store/copy.h"
#include "store/prune.h"
#include "store/store.h"

#include <stdlib.h>
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
        return error_set(err, ERROR_USE, "both stores are the same one: %s", cli->words[0]);
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

/* ---- prune ------------------------------------------------------------------------- */

static const int64_t DAY_MS = 24 * 60 * 60 * 1000;

static bool read_days(const struct cli *cli, int64_t *before_ms, struct error *err)
{
    const char *text = flag_get(cli, "older-than");
    char *end;
    long days = text ? strtol(text, &end, 10) : 0;

    if (!text) {
        error_set(err, ERROR_USE, "--older-than is missing: how old must a run be?");
        return error_hint(err, "for instance: cutegen store prune --older-than 90 --dry-run");
    }
    if (*end || !*text || days < 0 || days > 100000)
        return error_set(err, ERROR_USE, "--older-than: '%s' is not a number of days", text);
    *before_ms = clock_unix_ms() - days * DAY_MS;
    return true;
}

bool cmd_store_prune(struct cli *cli, int *code, struct error *err)
{
    struct prune_rules rules = {.dry = flag_get(cli, "dry-run") != NULL};
    struct prune_done done = {0};
    struct store *s = NULL;
    bool ok;

    (void)code;
    if (!read_days(cli, &rules.before_ms, err))
        return false;
    ok = store_open(cli->settings.runs_dir, cli->settings.store_url,
                    rules.dry ? STORE_READ : STORE_WRITE, &s, err) &&
         store_prune(s, &rules, &done, err);
    store_close(s);
    if (!ok)
        return false;
    if (cli->json)
        print_json(json_pack("{s:I, s:I, s:I, s:b}", "runs", (json_int_t)done.runs, "texts",
                             (json_int_t)done.texts, "bytes", (json_int_t)done.bytes, "dry_run",
                             (int)rules.dry));
    else if (rules.dry)
        printf("%lld runs would be pruned\n", (long long)done.runs);
    else
        printf("%lld runs pruned, %lld texts removed (%.1f MB)\n", (long long)done.runs,
               (long long)done.texts, (double)done.bytes / 1e6);
    return true;
}

/* ---- upgrade ----------------------------------------------------------------------- */

/* The address contains no password, so it may appear on a command line. */
static bool dump_server(struct cli *cli, const char **path, struct error *err)
{
    char stamp[25];
    const char *argv[] = {"pg_dump", "--format=custom", "--file", NULL, "--dbname", NULL, NULL};
    struct proc_spec spec = {.argv = argv};
    struct proc_result r;

    clock_stamp(clock_unix_ms(), stamp);
    for (char *p = stamp; *p; p++)
        *p = *p == ':' ? '-' : *p;
    *path =
        path_join(cli->a, cli->settings.runs_dir, arena_printf(cli->a, "store-%.19s.dump", stamp));
    argv[3] = *path;
    argv[5] = cli->settings.store_url;
    if (dir_make(cli->settings.runs_dir, err) && proc_run(&spec, cli->a, &r, err)) {
        if (r.end == PROC_EXITED && r.code == 0)
            return true;
        error_set(err, ERROR_MACHINE, "pg_dump: %s: %.300s", proc_end_text(&r, cli->a), r.err.data);
    }
    error_hint(err, "nothing was changed; install it (apt-get install postgresql-client), or back "
                    "up by other means and pass --no-backup");
    return error_add(err, "backing up the store");
}

bool cmd_store_upgrade(struct cli *cli, int *code, struct error *err)
{
    bool server = cli->settings.store_url && *cli->settings.store_url;
    const char *backup = NULL;
    struct store *s = NULL;
    bool ok = !server || flag_get(cli, "no-backup") || dump_server(cli, &backup, err);

    (void)code;
    ok = ok && store_open(cli->settings.runs_dir, cli->settings.store_url, STORE_UPGRADE, &s, err);
    store_close(s);
    if (ok && cli->json)
        print_json(json_pack("{s:i, s:o}", "version", store_version(), "backup",
                             json_from_string(backup)));
    else if (ok && backup)
        printf("version %d; backup: %s\n", store_version(), backup);
    else if (ok)
        printf("version %d\n", store_version());
    return ok;
}
