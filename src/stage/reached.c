/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reached.c - how near the best known kernels of a class are to their floor, for prompts.
 *
 * The figures are measured ones, from the tables of docs/results.md: bench/results.py
 * writes peaks/reached.json with that page. The results of this machine's own runs come from
 * loop/memory.c.
 */
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "stage/workshop.h"

enum { MAX_FILE = 1 << 16 };

static json_t *read_table(struct arena *a, struct error *err)
{
    char *path;
    struct text text;
    json_t *table = NULL;

    if (!home_data("peaks/reached.json", a, &path, err) ||
        !file_read(path, MAX_FILE, a, &text, err) || !json_parse(text, path, &table, err))
        return NULL;
    return json_own(a, table);
}

const char *workshop_reached(enum kernel_class of, struct arena *a)
{
    struct error why = {0};
    const json_t *table = read_table(a, &why);
    const json_t *row = json_object_get(json_object_get(table, "classes"), class_names[of]);

    if (!table)
        log_warn("prompts do not say what known kernels reach: %s", why.text);
    if (!row)
        return NULL;
    return arena_printf(a,
                        "Measured on %s at full sizes, the best kernel known of the class %s "
                        "reaches %.0f %% of its floor (%s), and the median of %lld tasks is "
                        "%.0f %%.",
                        json_string_or(table, "device", "a GPU"), class_names[of],
                        100 * json_double_or(row, "best", 0), json_string_or(row, "task", "?"),
                        (long long)json_int_or(row, "tasks", 0),
                        100 * json_double_or(row, "median", 0));
}
