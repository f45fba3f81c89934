/*
 * calibrate_model.c - modelled times of the calibration cases for given constants.
 *
 *   simt_model COUNTERS.jsonl TIMES.jsonl < CONSTANTS
 *
 * Registers come from TIMES. Every line of stdin is one set of constants, in the
 * order of struct modelled_constants; an empty line takes the product's own. For
 * each, one line: "microseconds bound" of every case. calibrate.py drives it.
 */
#include "base/json.h"
#include "eval/modelled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CASES = 512 };

static json_t *counters[MAX_CASES], *resources[MAX_CASES];

static size_t read_lines(const char *path, json_t **out)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0, n = 0;
    while (f && n < MAX_CASES && getline(&line, &cap, f) > 0) {
        out[n] = json_loads(line, 0, NULL);
        n += out[n] != NULL;
    }
    free(line);
    if (f)
        fclose(f);
    return n;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    json_t *times[MAX_CASES];
    char line[4096];
    size_t n = argc > 2 ? read_lines(argv[1], counters) : 0,
           m = argc > 2 ? read_lines(argv[2], times) : 0;
    const struct gpu *gpu = gpu_find("H200");

    if (!n || n != m) {
        fprintf(stderr, "%zu counters and %zu times\n", n, m);
        return 1;
    }
    for (size_t i = 0; i < n; i++)
        resources[i] = json_pack("{s:{s:I}}", json_string_or(counters[i], "kernel", ""),
                                 "registers", (json_int_t)json_int_or(times[i], "registers", 32));
    while (fgets(line, sizeof line, stdin)) {
        struct modelled_constants k = modelled_h200;
        double *v = (double *)&k;
        char *p = line, *end;
        for (size_t i = 0; i < sizeof k / sizeof *v; i++, p = end) {
            double x = strtod(p, &end);
            if (end == p)
                break;
            v[i] = x;
        }
        for (size_t i = 0; i < n; i++) {
            struct modelled out = {0};
            json_t *list = json_pack("[O]", counters[i]);
            if (modelled_time(
                    &(struct modelled_input){
                        .gpu = gpu, .counters = list, .resources = resources[i], .constants = &k},
                    &out, &err))
                printf("%.4f %s ", out.time_us, out.bound);
            json_decref(out.parts);
            json_decref(list);
        }
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
