/*
 * profile.c - what a profiler would say, in few words for whoever optimises.
 *
 * On simt the counters of the last test are the profile, with the modelled
 * time taken apart by resource.
 */
#include "base/buf.h"
#include "base/json.h"
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

bool stage_profile(struct stage *st, const struct build_result *build,
                   const struct test_result *test, const struct measurement *time, struct arena *a,
                   struct profile *out, struct error *err)
{
    struct buf text = buf_init(MAX_PROFILE_BYTES);

    (void)err;
    *out = (struct profile){.source = "simt counters", .data = json_own(a, json_object())};
    buf_printf(&text, "%s time %.2f us on %s; bound by %s; floor %.2f us\n",
               time->modelled ? "modelled" : "measured", time->time_us,
               time->modelled ? st->device.models : st->device.name,
               time->bound ? time->bound : "unknown", time->floor_us);
    if (time->parts) {
        put_object(&text, "  ", time->parts);
        put_list(&text, "modelled launch", json_object_get(time->parts, "launches"));
        json_object_set(out->data, "modelled", time->parts);
    }
    if (test->counters) {
        put_list(&text, "counters of launch", test->counters);
        json_object_set(out->data, "counters", test->counters);
    }
    if (build->resources) {
        buf_puts(&text, "compiled\n");
        put_object(&text, "  ", build->resources);
        json_object_set(out->data, "resources", build->resources);
    }
    if (!test->counters)
        out->source = "compiler figures";
    out->text = buf_copy(&text, a).data;
    buf_release(&text);
    return true;
}
