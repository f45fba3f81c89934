/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_server.c - `server status`, `server stop`. */
#include "base/json.h"
#include "cli/cmd.h"
#include "stage/stage.h"

static void print_process(const json_t *p)
{
    printf("  %-8s %-8s %6d  %5d MiB  used %d times  %5d s  %s\n", json_string_or(p, "kind", "?"),
           json_string_or(p, "state", "?"), (int)json_int_or(p, "pid", 0),
           (int)json_int_or(p, "resident_mib", 0), (int)json_int_or(p, "uses", 0),
           (int)json_int_or(p, "seconds", 0), json_string_or(p, "tag", ""));
}

bool cmd_server_status(struct cli *cli, int *code, struct error *err)
{
    json_t *status, *p;
    size_t i;

    (void)code;
    if (!stage_server_status(&status, err))
        return false;
    if (cli->json) {
        json_t *answer = status ? status : json_object();

        json_object_del(answer, "ok");
        json_object_set_new(answer, "running", json_boolean(status != NULL));
        print_json(answer);
        return true;
    }
    if (!status) {
        printf("no server runs; the next eval or run starts one\n");
        return true;
    }
    printf("server   process %d, version %s, up %d s, %d clients\n",
           (int)json_int_or(status, "pid", 0), json_string_or(status, "version", "?"),
           (int)json_int_or(status, "uptime_s", 0), (int)json_int_or(status, "clients", 0));
    printf("limits   ends after %d s without work, %d MiB for what waits\n",
           (int)json_int_or(status, "idle_s", 0), (int)json_int_or(status, "memory_mib", 0));
    json_array_foreach(json_object_get(status, "processes"), i, p) print_process(p);
    json_decref(status);
    return true;
}

bool cmd_server_stop(struct cli *cli, int *code, struct error *err)
{
    bool was_there;

    (void)code;
    if (!stage_server_stop(&was_there, err))
        return false;
    if (cli->json)
        print_json(json_pack("{s:b}", "stopped", (int)was_there));
    else
        printf("%s\n", was_there ? "the server ends" : "no server runs");
    return true;
}
