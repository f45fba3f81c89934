/*
 * test_hostile.c - plans that attack, one file each in hostile/: every one ends as its verdict.
 *
 * A file's first lines say what it does, which verdicts are right and what the verdict must
 * say. The gate is left out: what it would refuse must be harmless without it.
 */
#include "support.h"

#include <dirent.h>

enum { MAX_FILES = 256 };

/* The rest of the line that begins with `mark`. */
static char *marked(struct arena *a, const char *source, const char *mark)
{
    const char *at = strstr(source, mark);
    if (at == NULL)
        fail_msg("no line '%s'", mark);
    at += strlen(mark);
    return arena_strndup(a, at, strcspn(at, "\n"));
}

/* Is the name one of those between | signs? */
static bool listed(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = list; p != NULL; p = strchr(p, '|')) {
        p += *p == '|';
        if (strncmp(p, name, len) == 0 && (p[len] == '|' || p[len] == '\0'))
            return true;
    }
    return false;
}

/* Says what is wrong; all files are tried. */
static bool check_file(struct fixture *f, const char *path)
{
    struct error err = {0};
    struct text source;
    json_t *launches;
    char *want, *says;
    struct verdict v;
    check_machine(file_read(path, 1 << 20, f->a, &source, &err), &err);
    want = marked(f->a, source.data, "// verdict: ");
    says = marked(f->a, source.data, "// says:");
    says += *says == ' ';
    v = judge(f, source.data, &launches);
    json_decref(launches);
    if (!listed(want, verdict_names[v.kind]) || !(has(v.summary, says) || has(v.detail, says)))
        return print_error("%s: got '%s': %s\n%s\n", path, verdict_names[v.kind], v.summary,
                           v.detail),
               false;
    if (has(v.detail, "root:") || has(v.detail, "PATH="))
        return print_error("%s shows what it may not see: %s\n", path, v.detail), false;
    return true;
}

static int by_name(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static void test_hostile(void **state)
{
    struct fixture *f = *state;
    char *folder = path_join(f->a, getenv("TEST_SOURCES"), "hostile"), *names[MAX_FILES];
    DIR *d = opendir(folder);
    struct dirent *e;
    int count = 0, wrong = 0;
    assert_non_null(d);
    while ((e = readdir(d)) != NULL)
        if (strstr(e->d_name, ".cu") != NULL && count < MAX_FILES)
            names[count++] = path_join(f->a, folder, e->d_name);
    closedir(d);
    assert_true(count > 50);
    qsort(names, (size_t)count, sizeof *names, by_name);
    for (int i = 0; i < count && f->builder != NULL; i++)
        wrong += !check_file(f, names[i]);
    assert_int_equal(wrong, 0);
}

static void test_no_plan(void **state)
{
    struct fixture *f = *state;
    json_t *launches;
    struct verdict v;
    if (f->builder == NULL)
        return;
    v = judge(f, "#include <cutegen/kernel.h>\n", &launches);
    assert_int_equal(v.kind, VERDICT_BAD_PLAN);
    if (!has(v.summary, "has no plan"))
        fail_msg("%s", v.summary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_no_plan),
    };
    return cmocka_run_group_tests_name("a hostile plan is a verdict and touches nothing", tests,
                                       fixture_open, fixture_close);
}
