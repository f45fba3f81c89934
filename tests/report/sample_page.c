/*
 * sample_page.c - writes the sample's pages into a folder, to look at them.
 *
 *     sample_page DIR        DIR/gemm.html, overlay.html, swish.html, none.html, suite.html
 */
#include "sample.h"

#include "base/fs.h"
#include "report/report.h"

#include <stdio.h>

static bool write_page(const char *dir, const char *name, const struct run_history *h, size_t n,
                       struct arena *a, struct error *err)
{
    return report_write(h, n, path_join(a, dir, name), err);
}

static bool write_all(const char *dir, struct arena *a, struct error *err)
{
    const char *ids[SAMPLE_COUNT];
    struct run_history h[SAMPLE_COUNT] = {0};
    struct store *s;
    char *runs;
    bool ok = dir_make(dir, err) && dir_temp("cutegen-sample", a, &runs, err) &&
              sample_fill(runs, a, ids, err) && store_open(runs, NULL, STORE_READ, &s, err);

    if (!ok)
        return false;
    for (int i = 0; ok && i < SAMPLE_COUNT; i++)
        ok = store_run_history(s, ids[i], a, &h[i], err);
    ok = ok && write_page(dir, "gemm.html", &h[SAMPLE_GEMM], 1, a, err) &&
         write_page(dir, "overlay.html", &h[SAMPLE_GEMM], 2, a, err) &&
         write_page(dir, "swish.html", &h[SAMPLE_SWISH], 1, a, err) &&
         write_page(dir, "none.html", &h[SAMPLE_NONE], 1, a, err) &&
         write_page(dir, "suite.html", h, SAMPLE_COUNT, a, err);
    for (int i = 0; i < SAMPLE_COUNT; i++)
        run_history_release(&h[i]);
    store_close(s);
    return dir_remove(runs, err) && ok;
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct error err = {0};
    bool ok = argc == 2 && write_all(argv[1], a, &err);

    if (!ok)
        fprintf(stderr, "%s\n", argc == 2 ? err.text : "sample_page DIR");
    arena_free(a);
    return ok ? 0 : 1;
}
