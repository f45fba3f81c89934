/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncu.c - reads ncu's raw and details pages; see ncu.h.
 *
 * The raw page as CSV: a line of names, a line of units, a line per kernel.
 * Units are taken from the line of units (ncu chooses prefixes by size unless told not to); numbers
 * may have thousands separators. Lines that do not begin with a quote are remarks of ncu.
 */
#include "eval/ncu.h"

#include "base/json.h"
#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 8192, MAX_KERNELS = 16, MAX_ADVICE = 3, ADVICE_BYTES = 320, NAME_BYTES = 120 };

/* ---- CSV ------------------------------------------------------------------- */

struct csv {
    struct text rest;
    struct arena *a;
    const char **cells; /* of the current line */
    size_t count;
};

/* Takes one cell off the front; *last: the line ends after it. */
static const char *take_cell(struct csv *c, bool *last)
{
    const char *p = c->rest.data, *end = p + c->rest.len;
    struct buf b = buf_init(1 << 20);
    const char *cell;

    if (p < end && *p == '"') {
        for (p++; p < end && (*p != '"' || (p + 1 < end && p[1] == '"')); p++) {
            if (*p == '"')
                p++;
            buf_putc(&b, *p);
        }
        p += p < end;
    }
    while (p < end && *p != ',' && *p != '\n')
        p++; /* skip an empty or malformed cell */
    *last = p >= end || *p == '\n';
    p += p < end;
    c->rest.len = (size_t)(end - p);
    c->rest.data = p;
    cell = buf_copy(&b, c->a).data;
    buf_release(&b);
    return cell;
}

/* The next line that holds cells; false at the end. */
static bool next_line(struct csv *c)
{
    for (struct text other; c->rest.len && *c->rest.data != '"';)
        (void)text_next_line(&c->rest, &other);
    c->count = 0;
    c->cells = arena_array(c->a, MAX_COLUMNS, sizeof(*c->cells));
    for (bool last = !c->rest.len; !last && c->count < MAX_COLUMNS;)
        c->cells[c->count++] = take_cell(c, &last);
    return c->count > 0;
}

/* ---- one kernel of the raw page ---------------------------------------------- */

struct kernel_row {
    const char **names, **units, **values;
    size_t count;
};

static const char *cell_of(const struct kernel_row *r, const char *name, const char **unit)
{
    for (size_t i = 0; i < r->count; i++) {
        if (strcmp(r->names[i], name) != 0)
            continue;
        if (unit)
            *unit = r->units[i];
        return r->values[i];
    }
    return NULL;
}

static double number_in(const char *text)
{
    char plain[64];
    size_t n = 0;
    char *end;
    double v;

    for (; *text && n + 1 < sizeof(plain); text++)
        if (*text != ',')
            plain[n++] = *text;
    plain[n] = '\0';
    v = strtod(plain, &end);
    return end == plain ? NAN : v;
}

/* Factor from this unit to its base unit: seconds, bytes, bytes per second. */
static double unit_scale(const char *unit)
{
    static const struct {
        const char *name;
        double scale;
    } units[] = {{"ns", 1e-9},    {"nsecond", 1e-9}, {"us", 1e-6},   {"usecond", 1e-6},
                 {"ms", 1e-3},    {"msecond", 1e-3}, {"s", 1},       {"second", 1},
                 {"byte", 1},     {"Kbyte", 1e3},    {"Mbyte", 1e6}, {"Gbyte", 1e9},
                 {"Tbyte", 1e12}, {"Ghz", 1e9},      {"Mhz", 1e6},   {"hz", 1}};
    size_t len = strcspn(unit, "/");

    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strlen(units[i].name) == len && strncmp(unit, units[i].name, len) == 0) {
            const char *per = unit[len] == '/' ? unit + len + 1 : "";

            if (strcmp(per, "ns") == 0 || strcmp(per, "nsecond") == 0)
                return units[i].scale * 1e9;
            return units[i].scale;
        }
    return 1;
}

/* A metric in its base unit; NAN if ncu did not report it. */
static double metric(const struct kernel_row *r, const char *name)
{
    const char *unit = "", *text = cell_of(r, name, &unit);

    return text && *text ? number_in(text) * unit_scale(unit) : NAN;
}

static double either(double a, double b)
{
    return isnan(a) ? b : a;
}

static void put(json_t *o, const char *key, double v)
{
    if (isfinite(v))
        json_object_set_new(o, key, json_real(v));
}

static void put_shape(json_t *o, const char *key, const char *text)
{
    int x, y, z;

    if (text && sscanf(text, "(%d, %d, %d)", &x, &y, &z) == 3)
        json_object_set_new(o, key, json_pack("[i, i, i]", x, y, z));
}

/* The length of a kernel's name without its parameters. */
static size_t bare_name(const char *name)
{
    const char *end = strstr(name, ">(");

    return end ? (size_t)(end - name) + 1 : strcspn(name, "(");
}

static void put_launch(const struct kernel_row *r, json_t *o)
{
    const char *name = cell_of(r, "Kernel Name", NULL);
    char shown[NAME_BYTES];
    json_t *string;

    if (name && strncmp(name, "void ", 5) == 0)
        name += 5;
    snprintf(shown, sizeof(shown), "%.*s", name ? (int)bare_name(name) : 0, name ? name : "");
    string = json_string(shown);
    json_object_set_new(o, "kernel", string ? string : json_string(""));
    put_shape(o, "grid", cell_of(r, "Grid Size", NULL));
    put_shape(o, "block", cell_of(r, "Block Size", NULL));
    put(o, "time_us", metric(r, "gpu__time_duration.sum") * 1e6);
    put(o, "registers", metric(r, "launch__registers_per_thread"));
    put(o, "smem_static", metric(r, "launch__shared_mem_per_block_static"));
    put(o, "smem_dynamic", metric(r, "launch__shared_mem_per_block_dynamic"));
    put(o, "waves", metric(r, "launch__waves_per_multiprocessor"));
}

static void put_throughput(const struct kernel_row *r, json_t *o)
{
    double read = metric(r, "dram__bytes_read.sum"), written = metric(r, "dram__bytes_write.sum");
    double seconds = metric(r, "gpu__time_duration.sum");
    double rate = metric(r, "dram__bytes.sum.per_second");

    put(o, "compute_pct", metric(r, "sm__throughput.avg.pct_of_peak_sustained_elapsed"));
    put(o, "memory_pct",
        metric(r, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"));
    put(o, "dram_pct",
        either(metric(r, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
               metric(r, "dram__throughput.avg.pct_of_peak_sustained_elapsed")));
    put(o, "l1_pct", metric(r, "l1tex__throughput.avg.pct_of_peak_sustained_active"));
    put(o, "l2_pct", metric(r, "lts__throughput.avg.pct_of_peak_sustained_elapsed"));
    put(o, "dram_read_bytes", read);
    put(o, "dram_write_bytes", written);
    if (isnan(rate) && seconds > 0)
        rate = (read + written) / seconds;
    put(o, "dram_gbps", rate / 1e9);
    put(o, "l1_hit_pct", metric(r, "l1tex__t_sector_hit_rate.pct"));
    put(o, "l2_hit_pct", metric(r, "lts__t_sector_hit_rate.pct"));
}

/* What limits blocks per SM: the smallest of the limits that ncu reported; NULL: none. */
static const char *occupancy_limit(const struct kernel_row *r)
{
    static const struct {
        const char *metric, *name;
    } limits[] = {{"launch__occupancy_limit_registers", "registers"},
                  {"launch__occupancy_limit_shared_mem", "shared memory"},
                  {"launch__occupancy_limit_warps", "warps per SM"},
                  {"launch__occupancy_limit_blocks", "blocks per SM"}};
    const char *found = NULL;
    double least = INFINITY;

    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        double v = metric(r, limits[i].metric);

        if (v < least) {
            least = v;
            found = limits[i].name;
        }
    }
    return found;
}

static void put_occupancy(const struct kernel_row *r, json_t *o)
{
    const char *limit = occupancy_limit(r);

    put(o, "occupancy_pct", metric(r, "sm__warps_active.avg.pct_of_peak_sustained_active"));
    put(o, "occupancy_theoretical_pct", metric(r, "sm__maximum_warps_per_active_cycle_pct"));
    if (limit)
        json_object_set_new(o, "occupancy_limit", json_string(limit));
    put(o, "ipc",
        either(metric(r, "sm__inst_executed.avg.per_cycle_active"),
               metric(r, "sm__inst_issued.avg.per_cycle_active")));
}

/* Stall reasons as shares of all waiting time. A warp that was issued, or could have been, does not
 * wait. */
static void put_stalls(const struct kernel_row *r, json_t *o)
{
    static const char front[] = "smsp__average_warps_issue_stalled_";
    static const char back[] = "_per_issue_active.ratio";
    json_t *stalls = json_object();
    double sum = 0;
    const char *key;
    json_t *v;

    for (size_t i = 0; i < r->count; i++) {
        size_t len = strlen(r->names[i]);
        double cycles = number_in(r->values[i]);
        char name[64];

        if (strncmp(r->names[i], front, sizeof(front) - 1) != 0 || len < sizeof(back) - 1 ||
            strcmp(r->names[i] + len - (sizeof(back) - 1), back) != 0 || !(cycles >= 0) ||
            strcmp(r->names[i] + sizeof(front) - 1, "selected_per_issue_active.ratio") == 0 ||
            strcmp(r->names[i] + sizeof(front) - 1, "not_selected_per_issue_active.ratio") == 0)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(len - (sizeof(front) - 1) - (sizeof(back) - 1)),
                 r->names[i] + sizeof(front) - 1);
        for (char *p = name; *p; p++)
            *p = *p == '_' ? ' ' : *p;
        if (json_object_set_new(stalls, name, json_real(cycles)) == 0)
            sum += cycles;
    }
    json_object_foreach(stalls, key, v) if (sum > 0) json_real_set(v, json_real_value(v) / sum);
    if (json_object_size(stalls))
        json_object_set(o, "stalls", stalls);
    json_decref(stalls);
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

static void put_accesses(const struct kernel_row *r, json_t *o)
{
    double local = metric(r, "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum") +
                   metric(r, "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum");

    put(o, "load_sectors_per_request",
        either(ratio(metric(r, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
                     metric(r, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum")),
               metric(r, "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio")));
    put(o, "store_sectors_per_request",
        either(ratio(metric(r, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
                     metric(r, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum")),
               metric(r, "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio")));
    put(o, "shared_load_conflicts",
        metric(r, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"));
    put(o, "shared_store_conflicts",
        metric(r, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"));
    put(o, "shared_wavefronts_over_ideal",
        ratio(metric(r, "memory_l1_wavefronts_shared"),
              metric(r, "memory_l1_wavefronts_shared_ideal")));
    if (local > 0)
        put(o, "local_requests", local);
}

static void put_roofline(const struct kernel_row *r, json_t *o)
{
    double adds = metric(r, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum");
    double muls = metric(r, "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum");
    double fmas = metric(r, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum");
    double seconds = metric(r, "gpu__time_duration.sum");
    double bytes = metric(r, "dram__bytes_read.sum") + metric(r, "dram__bytes_write.sum");
    double flops = adds + muls + 2 * fmas;

    if (isnan(flops)) { /* otherwise from the metrics of the roofline section */
        double cycles = metric(r, "smsp__cycles_elapsed.avg.per_second") * seconds;

        flops =
            cycles *
            (metric(r, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed") +
             metric(r, "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed") +
             metric(r, "derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2"));
    }
    put(o, "fma_pct",
        either(metric(r, "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"),
               metric(r, "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active")));
    put(o, "tensor_pct",
        either(metric(r, "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"),
               metric(r, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active")));
    put(o, "tflops_fp32", flops / seconds / 1e12);
    put(o, "flops_per_byte", ratio(flops, bytes));
}

/* ---- the details page: advice --------------------------------------------------- */

struct columns {
    size_t id, name, type, text, speedup;
};

static size_t column_of(const struct csv *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->cells[i], name) == 0)
            return i;
    return SIZE_MAX;
}

/* The first sentences that fit, on one line. */
static json_t *boiled_down(const char *text)
{
    char line[ADVICE_BYTES + 1];
    size_t n = 0, stop = 0;
    json_t *v;

    for (; *text && n < ADVICE_BYTES; text++) {
        char ch = isspace((unsigned char)*text) ? ' ' : *text;

        if (ch == ' ' && (n == 0 || line[n - 1] == ' '))
            continue;
        line[n++] = ch;
        if (ch == '.' && (isspace((unsigned char)text[1]) || !text[1]))
            stop = n;
    }
    line[*text && stop ? stop : n] = '\0';
    v = json_string(line);
    return v ? v : json_string("");
}

/* Inserts one piece of advice, ordered by estimated speed-up, largest first. */
static void add_advice(json_t *kernel, const char *rule, const char *text, double speedup)
{
    json_t *list = json_object_get(kernel, "advice"), *name = json_string(rule), *one;
    size_t at = 0;

    if (!list) {
        list = json_array();
        json_object_set_new(kernel, "advice", list);
    }
    one = json_pack("{s:o, s:o, s:f}", "rule", name ? name : json_string(""), "text",
                    boiled_down(text), "speedup_pct", isfinite(speedup) ? speedup : 0);
    while (at < json_array_size(list) && json_double_or(json_array_get(list, at), "speedup_pct",
                                                        0) >= (isfinite(speedup) ? speedup : 0))
        at++;
    json_array_insert_new(list, at, one);
    if (json_array_size(list) > MAX_ADVICE)
        json_array_remove(list, MAX_ADVICE);
}

static void read_details(struct text details, json_t *kernels, const int *ids, struct arena *a)
{
    struct csv c = {.rest = details, .a = a};
    struct columns k;

    if (!next_line(&c))
        return;
    k = (struct columns){.id = column_of(&c, "ID"),
                         .name = column_of(&c, "Rule Name"),
                         .type = column_of(&c, "Rule Type"),
                         .text = column_of(&c, "Rule Description"),
                         .speedup = column_of(&c, "Estimated Speedup")};
    if (k.id == SIZE_MAX || k.name == SIZE_MAX || k.type == SIZE_MAX || k.text == SIZE_MAX)
        return;
    while (next_line(&c)) {
        /* Skip advice about compressible memory: none of ours is. */
        if (c.count <= k.text || !*c.cells[k.text] || strstr(c.cells[k.text], "Compression") ||
            (strcmp(c.cells[k.type], "OPT") != 0 && strcmp(c.cells[k.type], "WRN") != 0))
            continue;
        for (size_t i = 0; i < json_array_size(kernels); i++)
            if (ids[i] == (int)number_in(c.cells[k.id]))
                add_advice(json_array_get(kernels, i), c.cells[k.name], c.cells[k.text],
                           k.speedup < c.count ? number_in(c.cells[k.speedup]) : 0);
    }
}

json_t *ncu_summary(struct text raw, struct text details)
{
    struct arena *a = arena_new();
    struct csv c = {.rest = raw, .a = a};
    struct kernel_row row = {0};
    json_t *kernels = json_array();
    int ids[MAX_KERNELS] = {0};

    if (next_line(&c)) {
        row.names = c.cells;
        row.count = c.count;
        row.units = next_line(&c) ? c.cells : NULL;
    }
    while (row.units && json_array_size(kernels) < MAX_KERNELS && next_line(&c)) {
        json_t *o = json_object();

        if (c.count < row.count)
            row.count = c.count;
        row.values = c.cells;
        put_launch(&row, o);
        put_throughput(&row, o);
        put_occupancy(&row, o);
        put_stalls(&row, o);
        put_accesses(&row, o);
        put_roofline(&row, o);
        ids[json_array_size(kernels)] =
            cell_of(&row, "ID", NULL) ? (int)number_in(cell_of(&row, "ID", NULL)) : 0;
        json_array_append_new(kernels, o);
    }
    read_details(details, kernels, ids, a);
    arena_free(a);
    return kernels;
}
