/*
 * export_check_test.c - an exported folder whose record agrees with its files, whatever they say:
 * Python that is not ours is found before anybody imports it.
 */
#include "base/fs.h"
#include "base/json.h"
#include "stage/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

struct folder {
    struct arena *a;
    char *dir;
    struct exported e;
};

static void put(struct folder *f, const char *name, struct text data, bool recorded)
{
    struct error err = {0};

    if (!file_write(path_join(f->a, f->dir, name), data, &err))
        fail_msg("%s", err.text);
    if (recorded)
        json_object_set_new(json_object_get(f->e.record, "files"), name, json_string("its hash"));
}

/* One of ours, with its slots filled. */
static struct text own(struct folder *f, const char *name, const char *summary)
{
    const char *slots[][2] = {{"@NAME@", "two"}, {"@RUN@", "2026-two-1"}, {"@SUMMARY@", summary}};
    struct error err = {0};
    struct text t;
    char *path, *text;

    if (!home_data(arena_printf(f->a, "oracle/exported/%s", name), f->a, &path, &err) ||
        !file_read(path, 1 << 20, f->a, &t, &err))
        fail_msg("%s", err.text);
    text = arena_strndup(f->a, t.data, t.len);
    for (size_t i = 0; i < ARRAY_LEN(slots); i++)
        for (char *at; (at = strstr(text, slots[i][0]));)
            text = arena_printf(f->a, "%.*s%s%s", (int)(at - text), text, slots[i][1],
                                at + strlen(slots[i][0]));
    return text_of(text);
}

static int set_up(void **state)
{
    struct folder *f = xmalloc(sizeof(*f));
    struct error err = {0};

    *f = (struct folder){.a = arena_new()};
    if (!dir_temp("cutegen-export", f->a, &f->dir, &err))
        fail_msg("%s", err.text);
    f->e = (struct exported){.dir = f->dir,
                             .name = "two",
                             .record = json_pack("{s:s, s:{}}", "cutegen", "0.1.0", "files"),
                             .table = json_pack("{s:s}", "gradients", "none")};
    json_own(f->a, f->e.record);
    json_own(f->a, f->e.table);
    put(f, "loader.py", own(f, "loader.py", ""), true);
    put(f, "native.py", own(f, "native.py", ""), true);
    put(f, "launcher.py", own(f, "launcher.py", ""), true);
    put(f, "gradients.py", own(f, "gradients.py", ""), true);
    put(f, "facts.py", own(f, "facts.py", ""), true);
    put(f, "__init__.py", own(f, "__init__.py.in", ""), true);
    put(f, "two_new.py", own(f, "model_new.py.in", "Judged on simt: x f32 [8, 8]."), true);
    put(f, "reference.py", text_of("# the task"), true);
    put(f, "record.json", text_of("{}"), false);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct folder *f = *state;
    struct error ignored = {0};

    dir_remove(f->dir, &ignored);
    arena_free(f->a);
    free(f);
    return 0;
}

static const char *said(struct folder *f)
{
    struct error err = {0};
    const char *why;

    if (!stage_export_python(&f->e, f->a, &why, &err))
        fail_msg("%s", err.text);
    return why ? why : "ours";
}

static void assert_says(struct folder *f, const char *words)
{
    if (!strstr(said(f), words))
        fail_msg("wanted '%s' in: %s", words, said(f));
}

static void what_we_write_is_ours(void **state)
{
    assert_says(*state, "ours");
}

/* Each of them agrees with its record. */
static void another_file_in_place_of_ours_is_found(void **state)
{
    static const char *const names[] = {"loader.py", "native.py",   "launcher.py", "gradients.py",
                                        "facts.py",  "__init__.py", "two_new.py"};
    struct folder *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct error err = {0};
        struct text was;

        assert_true(file_read(path_join(f->a, f->dir, names[i]), 1 << 20, f->a, &was, &err));
        put(f, names[i], text_of(arena_printf(f->a, "%simport os\n", was.data)), true);
        assert_says(f, arena_printf(f->a, "%s is not what this cutegen writes", names[i]));
        put(f, names[i], text_of(""), true);
        assert_says(f, "is not what this cutegen writes");
        put(f, names[i], was, true);
        assert_says(f, "ours");
    }
}

static void a_slot_cannot_end_its_string(void **state)
{
    static const char *const summaries[] = {"\"\"\"\nimport os\nos.system('x')\n\"\"\"", "\\\"\"\"",
                                            "\"\"\" + str(__import__('os')) + \"\"\"",
                                            "\\N{APOSTROPHE}", "\""};
    struct folder *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(summaries); i++) {
        put(f, "two_new.py", own(f, "model_new.py.in", summaries[i]), true);
        assert_says(f, "two_new.py is not what this cutegen writes");
    }
}

static void what_python_would_take_first_is_found(void **state)
{
    static const char *const names[] = {"loader.cpython-311-x86_64-linux-gnu.so", "loader.pyc",
                                        "sitecustomize.py", "torch.py", ".hidden"};
    struct folder *f = *state;

    for (size_t i = 0; i < 2 * ARRAY_LEN(names); i++) { /* the second time they are in its record */
        const char *name = names[i % ARRAY_LEN(names)];

        if (i >= ARRAY_LEN(names) && !strcmp(name, ".hidden"))
            continue;
        put(f, name, text_of("x"), i >= ARRAY_LEN(names));
        assert_says(f, arena_printf(f->a, "%s is not of the export", name));
        assert_int_equal(unlink(path_join(f->a, f->dir, name)), 0);
    }
    assert_int_equal(mkdir(path_join(f->a, f->dir, "__pycache__"), 0700), 0);
    assert_says(f, "__pycache__ is not of the export");
    assert_int_equal(rmdir(path_join(f->a, f->dir, "__pycache__")), 0);
    assert_int_equal(mkdir(path_join(f->a, f->dir, "backward"), 0700), 0);
    assert_says(f, "backward is not of the export");
}

static enum export_native native(struct folder *f)
{
    const char *name = "";

    assert_says(f, "ours");
    return stage_export_native(&f->e, f->a, &name);
}

static void the_loader_in_c_is_ours(void **state)
{
    struct folder *f = *state;
    struct error err = {0};
    struct utsname host;
    const char *name;
    struct text library = {0};
    char *path;

    assert_int_equal(uname(&host), 0);
    name = arena_printf(f->a, "loader-%s.so", host.machine);
    if (!home_program("cutegen-loader.so", f->a, &path, &err) ||
        !file_read(path, 16 << 20, f->a, &library, &err))
        fail_msg("%s", err.text);
    assert_int_equal(native(f), EXPORT_NATIVE_NONE);
    put(f, name, library, true);
    assert_int_equal(native(f), EXPORT_NATIVE_SAME);
    put(f, "loader-vax.so", text_of("x"), true);
    assert_int_equal(native(f), EXPORT_NATIVE_ELSEWHERE);
    put(f, name, text_of(arena_printf(f->a, "x%s", library.data)),
        true); /* it agrees with its record */
    assert_int_equal(native(f), EXPORT_NATIVE_DIFFERS);
}

static void a_link_or_a_pipe_is_found(void **state)
{
    struct folder *f = *state;
    const char *place = path_join(f->a, f->dir, "kernel-0.ptx");

    json_object_set_new(json_object_get(f->e.record, "files"), "kernel-0.ptx", json_string("h"));
    assert_int_equal(symlink("/etc/passwd", place), 0);
    assert_says(f, "kernel-0.ptx is not of the export");
    assert_int_equal(unlink(place), 0);
    assert_int_equal(mkfifo(place, 0600), 0);
    assert_says(f, "kernel-0.ptx is not of the export");
}

static void a_name_is_an_identifier(void **state)
{
    static const char *const names[] = {"", "..", "a b", "two\"\"\"", "1st", "a.b"};
    struct folder *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        f->e.name = names[i];
        assert_says(f, "its name is not one of Python's");
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_we_write_is_ours),        TEST(another_file_in_place_of_ours_is_found),
        TEST(a_slot_cannot_end_its_string), TEST(what_python_would_take_first_is_found),
        TEST(the_loader_in_c_is_ours),      TEST(a_link_or_a_pipe_is_found),
        TEST(a_name_is_an_identifier),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
