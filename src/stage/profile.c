/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - what a profiler says, in few words for whoever optimises.
 *
 * On a GPU it is ncu, run on the candidate now, because now somebody reads it.
 * On simt the counters of the last test are the profile, with the modelled
 * time taken apart by resource. Where ncu is missing or may not read the
 * counters, what the compiler says must do, and the text says so.
 */
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "eval/ncu.h"
#include "stage/workshop.h"

#include <string.h>

enum { MAX_PROFILE_BYTES = 16 * 1024 };

static void put_object(struct buf *out, const char *indent, const json_t *object)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (json_is_integer(value))
            buf_printf(out, "%s%s: %lld\n", indent, key, (long long)json_integer_value(value));
        else if (json_is_real(value))
            buf_printf(out, "%s%s: %.4g\n", indent, key, json_real_value(value));
        else if (json_is_string(value))
            buf_printf(out, "%s%s: %s\n", indent, key, json_string_value(value));
        else if (json_is_object(value)) {
            buf_printf(out, "%s%s:\n", indent, key);
            put_object(out, strcmp(indent, "  ") == 0 ? "    " : "      ", value);
        }
    }
}

static void put_list(struct buf *out, const char *title, const json_t *list)
{
    size_t i;
    json_t *one;

    json_array_foreach(list, i, one)
    {
        buf_printf(out, "%s %zu\n", title, i + 1);
        put_object(out, "  ", one);
    }
}

static void put_time(struct buf *out, const struct device *d, const struct measurement *time)
{
    buf_printf(out, "%s time %.2f us on %s; bound by %s; floor %.2f us\n",
               time->modelled ? "modelled" : "measured", time->time_us,
               time->modelled ? d->models : d->name, time->bound ? time->bound : "unknown",
               time->floor_us);
}

/* ncu's pages as data and text; false when there are none, and `why` says why. */
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

/* simt's counters, or without a device's counters only what the compiler says. */
static void profile_by_counters(const struct build_result *build, const struct test_result *test,
                                const struct measurement *time, struct profile *out,
                                struct buf *text)
{
    if (time->parts) {
        put_object(text, "  ", time->parts);
        put_list(text, "modelled launch", json_object_get(time->parts, "launches"));
        json_object_set(out->data, "modelled", time->parts);
    }
    if (test->counters) {
        put_list(text, "counters of launch", test->counters);
        json_object_set(out->data, "counters", test->counters);
    }
    if (build->resources) {
        buf_puts(text, "compiled\n");
        put_object(text, "  ", build->resources);
        json_object_set(out->data, "resources", build->resources);
    }
    out->source = test->counters ? "simt counters" : "compiler figures";
}

bool stage_profile(struct stage *st, const struct build_result *build,
                   const struct test_result *test, const struct measurement *time, struct arena *a,
                   struct profile *out, struct error *err)
{
    struct buf text = buf_init(MAX_PROFILE_BYTES);
    struct error why = {0};

    (void)err;
    *out = (struct profile){.source = "ncu", .data = json_own(a, json_object())};
    put_time(&text, &st->device, time);
    if (st->device.kind == DEVICE_SIMT) {
        profile_by_counters(build, test, time, out, &text);
    } else if (!profile_by_ncu(st, build, test, a, out, &text, &why)) {
        log_warn("no profile by ncu: %s", why.text);
        buf_printf(&text, "(no profile by ncu: %s; what follows is what the compiler says)\n",
                   why.text);
        profile_by_counters(build, test, time, out, &text);
    }
    out->text = buf_copy(&text, a).data;
    buf_release(&text);
    return true;
}
