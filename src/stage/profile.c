/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - a short profile for the model that optimizes.
 *
 * On a GPU it runs ncu on the candidate. On simt it uses the counters of one more run that counts
 * by line, with the modelled time by resource. If ncu is missing or may not read the counters, the
 * compiler's figures are used instead, and the text says so.
 */
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "eval/ncu.h"
#include "eval/simt_profile.h"
#include "stage/workshop.h"

enum { MAX_PROFILE_BYTES = 16 * 1024 };

/* "registers 40, smem 1024" of each kernel, as the compiler reports them. */
static void put_resources(struct buf *out, const json_t *resources)
{
    const char *kernel, *key;
    json_t *of, *value;

    json_object_foreach((json_t *)(uintptr_t)resources, kernel, of)
    {
        bool some = false;

        buf_printf(out, "compiled %s:", kernel);
        json_object_foreach(of, key, value)
        {
            if (json_number_value(value) == 0)
                continue;
            buf_printf(out, "%s %s %.6g", some ? "," : "", key, json_number_value(value));
            some = true;
        }
        buf_putc(out, '\n');
    }
}

static void put_time(struct buf *out, const struct device *d, const struct measurement *time)
{
    buf_printf(out, "%s%s time %.2f us on %s; bound by %s; floor %.2f us\n",
               time->modelled ? modelled_words(d->models) : "measured",
               time->modelled ? " (not measured)" : "", time->time_us,
               time->modelled ? d->models : d->name, time->bound ? time->bound : "unknown",
               time->floor_us);
}

/* ncu's pages as data and text; false if there are none, with the reason in `why`. */
static bool profile_by_ncu(struct stage *st, const struct build_result *build,
                           const struct test_result *test, struct arena *a, struct profile *out,
                           struct buf *text, struct error *why)
{
    struct judge_config config = workshop_judge_config(st, NULL);
    struct ncu_pages pages;
    json_t *kernels;
    bool ok;

    if (!st->tools.ncu) {
        error_set(why, ERROR_MACHINE, "ncu is not installed");
        return false;
    }
    if (!workshop_lease(st, why))
        return false;
    ok = ncu_profile(&config, build, test, st->tools.ncu, a, &pages, why);
    workshop_unlease(st);
    if (!ok)
        return false;
    kernels = ncu_summary(pages.raw, pages.details);
    ok = json_array_size(kernels) > 0;
    if (ok)
        ncu_text(kernels, text);
    else
        error_set(why, ERROR_MACHINE, "ncu saw no kernel");
    json_object_set_new(out->data, "kernels", kernels);
    return ok;
}

/* Without counters only the compiler's figures are available. */
static void profile_by_compiler(const struct build_result *build, struct profile *out,
                                struct buf *text)
{
    if (build->resources) {
        put_resources(text, build->resources);
        json_object_set(out->data, "resources", build->resources);
    }
    out->source = "compiler figures";
}

/* simt's counters in ten lines, by source line if one more run succeeds. */
static void profile_by_simt(struct stage *st, const struct candidate *cand,
                            const struct build_result *build, const struct test_result *test,
                            const struct measurement *time, struct arena *a, struct profile *out,
                            struct buf *text)
{
    struct judge_config config = workshop_judge_config(st, NULL);
    struct error why = {0};
    json_t *by_line = NULL;

    if (simt_profile(&config, build, test, a, &by_line, &why))
        json_own(a, by_line);
    else
        log_info("no profile by line: %s", why.text);
    simt_profile_text(&(struct simt_profile_input){.modelled = time->parts,
                                                   .counters = by_line ? by_line : test->counters,
                                                   .source = cand->source,
                                                   .source_name = workshop_source_name(st)},
                      a, text);
    json_object_set(out->data, "modelled", time->parts);
    json_object_set(out->data, "counters", by_line ? by_line : test->counters);
    if (build->resources)
        json_object_set(out->data, "resources", build->resources);
    out->source = "simt counters";
}

bool stage_profile(struct stage *st, const struct candidate *cand, const struct build_result *build,
                   const struct test_result *test, const struct measurement *time, struct arena *a,
                   struct profile *out, struct error *err)
{
    struct buf text = buf_init(MAX_PROFILE_BYTES);
    struct error why = {0};

    (void)err;
    *out = (struct profile){.source = "ncu", .data = json_own(a, json_object())};
    put_time(&text, &st->device, time);
    if (st->device.kind == DEVICE_SIMT && time->parts && test->counters) {
        profile_by_simt(st, cand, build, test, time, a, out, &text);
    } else if (st->device.kind == DEVICE_SIMT) {
        profile_by_compiler(build, out, &text);
    } else if (!profile_by_ncu(st, build, test, a, out, &text, &why)) {
        log_warn("no profile by ncu: %s", why.text);
        buf_printf(&text, "(no profile by ncu: %s; what follows is what the compiler says)\n",
                   why.text);
        profile_by_compiler(build, out, &text);
    }
    out->text = buf_copy(&text, a).data;
    buf_release(&text);
    return true;
}
