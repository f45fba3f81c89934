/* test_hostile.c - plans that attack: each ends as a verdict, and nothing else happens. */
#include "support.h"

#include <sys/stat.h>

static const struct hostile_case {
    const char *name, *before, *body; /* `before` stands outside the plan */
    const char *text;                 /* in the summary; the verdict is always BAD_PLAN */
} cases[] = {
    {"never returns", "", "for (;;) ;", "did not return"},
    {"catches the signal and goes on",
     "void (*signal(int, void (*)(int)))(int); static void on(int s) { (void)s; }",
     "signal(24, on); for (;;) ;", "did not return"},
    {"crashes", "", "return *(volatile int *)8;", "SIGSEGV"},
    {"recurses without end",
     "int deep(volatile int *p); int deep(volatile int *p) { int here[64]; here[0] = *p; return "
     "deep(here) + "
     "here[0]; }",
     "volatile int n = 1; return deep(&n);", "SIGSEGV"},
    {"exits", "void _exit(int);", "_exit(0);", "without an answer"},
    {"aborts", "void abort(void);", "abort();", "SIGABRT"},
    {"forks", "int fork(void);", "return fork();", "SIGSYS"},
    {"starts a thread", "long syscall(long, ...);",
     "return (int)syscall(" /* clone: 56 on x86_64, 220 on aarch64 */
#ifdef __x86_64__
     "56"
#else
     "220"
#endif
     ", 0x100, 0, 0, 0, 0);",
     "SIGSYS"},
    {"starts a program", "int execl(const char *, const char *, ...);",
     "return execl(\"/bin/true\", \"true\", (char *)0);", "SIGSYS"},
    {"opens a socket", "int socket(int, int, int);", "return socket(2, 1, 0);", "SIGSYS"},
    {"reads a file", "int open(const char *, int, ...);", "return open(\"/etc/passwd\", 0);",
     "SIGSYS"},
    {"makes memory executable", "int mprotect(void *, size_t, int); void *sbrk(long);",
     "return mprotect((void *)((long)sbrk(0) & ~4095L), 4096, 7);", "SIGSYS"},
    {"kills its parent", "int kill(int, int); int getppid(void);", "return kill(getppid(), 9);",
     "SIGSYS"},
#ifndef __SANITIZE_ADDRESS__ /* under which the planner has no limit of addresses */
    {"allocates without end", "void *malloc(size_t);",
     "for (;;) { char *p = (char *)malloc(1 << 20); for (int i = 0; i < 1 << 20; i += 4096) p[i] = "
     "1; }",
     "SIGSEGV"},
#endif
    {"prints an answer of its own", "long write(int, const void *, size_t);",
     "static const char s[] = "
     "\"{\\\"ok\\\":true,\\\"workspace\\\":[],\\\"ops\\\":[],\\\"maps\\\":[]}\\n\";"
     "write(1, s, sizeof s - 1); return 1;",
     "the plan returned 1"},
    {"prints an answer and exits", "long write(int, const void *, size_t); void _exit(int);",
     "static const char s[] = "
     "\"{\\\"ok\\\":true,\\\"workspace\\\":[],\\\"ops\\\":[],\\\"maps\\\":[]}\\n\";"
     "write(1, s, sizeof s - 1); _exit(0);",
     "without an answer"},
    {"writes to another descriptor", "long write(int, const void *, size_t);",
     "return (int)write(5, \"x\", 1);", "SIGSYS"},
    {"breaks the function table", "", "call->api = 0; return CUTEGEN_FAIL(call, \"x\");",
     "SIGSEGV"},
};

/* Not through plan_compile(), which would not let these link. */
static char *compile_hostile(struct fixture *f, const struct hostile_case *c,
                             const char *constructor)
{
    struct error err = {0};
    struct proc_result r;
    char *in = path_join(f->a, f->dir, "hostile.c"), *out = path_join(f->a, f->dir, "hostile.so");
    const char *argv[] = {f->tools.cc, "-shared",
                          "-fPIC",     "-w",
                          "-O0",       "-DCUTEGEN_HOST=1",
                          "-isystem",  f->tools.kernel_include,
                          "-o",        out,
                          in,          NULL};
    struct proc_spec spec = {.argv = argv, .deadline_ms = 60000, .merge_stderr = true};
    char *source =
        arena_printf(f->a,
                     "#include <cutegen/kernel.h>\n%s\n%s\nCUTEGEN_PLAN(call)\n{\n%s\nreturn "
                     "0;\n}\n",
                     c->before, constructor, c->body);
    check_machine(file_write(in, text_of(source), &err), &err);
    check_machine(proc_run(&spec, f->a, &r, &err), &err);
    if (r.end != PROC_EXITED || r.code != 0)
        fail_msg("%s does not compile: %s", c->name, r.out.data);
    return out;
}

static struct verdict run(struct fixture *f, const char *so)
{
    struct error err = {0};
    struct verdict v;
    json_t *launches;
    check_machine(plan_run(so, f->request, text_of(""), "hostile.cu", f->a, &launches, &v, &err),
                  &err);
    json_decref(launches);
    return v;
}

static void test_hostile(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct verdict v = run(f, compile_hostile(f, &cases[i], ""));
        if (v.kind != VERDICT_BAD_PLAN || !has(v.summary, cases[i].text))
            fail_msg("%s: got '%s': %s", cases[i].name, verdict_names[v.kind], v.summary);
    }
}

/* Constructors run while the library is loaded, under the first filter. */
static void test_constructor_writes_nothing(void **state)
{
    struct fixture *f = *state;
    char *path = path_join(f->a, f->dir, "written");
    const struct hostile_case c = {
        "writes a file while loading",
        "int open(const char *, int, ...); int fork(void); int socket(int, int, int);",
        "return got;", ""};
    char *constructor =
        arena_printf(f->a,
                     "int got;\n__attribute__((constructor)) static void early(void)\n"
                     "{ got = open(\"%s\", 0101, 0600) >= 0 ? 1 : fork() >= 0 ? 2 : socket(2, 1, "
                     "0) >= 0 ? 3 : 40; }",
                     path);
    struct verdict v = run(f, compile_hostile(f, &c, constructor));
    assert_int_equal(v.kind, VERDICT_BAD_PLAN);
    if (!has(v.summary, "the plan returned 40"))
        fail_msg("%s", v.summary);
    assert_false(file_exists(path));
}

static void test_no_plan(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    const char *so;
    struct verdict v;
    check_machine(plan_compile(&f->tools, text_of("#include <cutegen/kernel.h>\n"), "candidate.cu",
                               f->dir, f->a, &so, &v, &err),
                  &err);
    assert_int_equal(v.kind, VERDICT_PASS);
    v = run(f, so);
    assert_int_equal(v.kind, VERDICT_BAD_PLAN);
    assert_true(has(v.summary, "has no plan"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_constructor_writes_nothing),
        cmocka_unit_test(test_no_plan),
    };
    return cmocka_run_group_tests_name("a hostile plan is a verdict and touches nothing", tests,
                                       fixture_open, fixture_close);
}
