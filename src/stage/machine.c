/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c - the machine a time was taken on: host, and on a GPU its uuid, driver and clocks.
 *
 * Read directly after the measurement, while the GPU is still leased: from the oracle, which is
 * warm, else from nvidia-smi. What neither reports is left out; the time is still valid.
 */
#include "base/json.h"
#include "base/proc.h"
#include "stage/workshop.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ASK_MS = 10 * 1000 };

/* In the order of the query. */
static const struct {
    const char *key;
    bool number;
} columns[] = {{"gpu_uuid", false},  {"driver", false},    {"sm_mhz", true},
               {"memory_mhz", true}, {"sm_max_mhz", true}, {"temperature_c", true}};

void machine_add_gpu(json_t *o, const char *line, struct arena *a)
{
    char *rest = arena_strdup(a, line), *one;

    for (size_t i = 0; i < ARRAY_LEN(columns) && (one = strsep(&rest, ",\n")) != NULL; i++) {
        char *end;
        double value;

        one += strspn(one, " ");
        value = strtod(one, &end);
        if (!columns[i].number && *one && *one != '[') /* [N/A] */
            json_object_set_new(o, columns[i].key, json_from_string(one));
        else if (columns[i].number && end != one)
            json_object_set_new(o, columns[i].key, json_real(value));
    }
}

static void ask_gpu(const struct device *d, json_t *o, struct arena *a)
{
    const char *id = d->place && *d->place ? d->place : arena_printf(a, "%d", d->index);
    const char *argv[] = {"nvidia-smi",
                          "--query-gpu=uuid,driver_version,clocks.sm,clocks.mem,clocks.max.sm,"
                          "temperature.gpu",
                          "--format=csv,noheader,nounits", arena_printf(a, "--id=%s", id), NULL};
    struct proc_spec spec = {.argv = argv, .deadline_ms = ASK_MS};
    struct error ignored = {0};
    struct proc_result r;

    if (proc_run(&spec, a, &r, &ignored) && r.end == PROC_EXITED && r.code == 0)
        machine_add_gpu(o, r.out.data, a);
}

const char *workshop_machine(const struct stage *st, struct arena *a)
{
    char host[65] = "";
    json_t *o = json_object();
    const char *text;

    gethostname(host, sizeof(host) - 1);
    json_object_set_new(o, "host", json_from_string(host));
    if (st->device.kind == DEVICE_CUDA) {
        const char *line = oracle_clocks(st->oracle, a);

        if (*line)
            machine_add_gpu(o, line, a);
        else
            ask_gpu(&st->device, o, a);
    }
    text = json_line(o, a);
    json_decref(o);
    return text;
}
