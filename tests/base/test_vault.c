/* test_vault.c - a key that was read is nowhere else: not in /proc, not in a child, not in a text.
 */
#include "base/fs.h"
#include "base/proc.h"
#include "base/vault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "sk-planted/4f9c+2e7a\"81"

static const char *const environment[] = {"A=1", "OPENAI_API_KEY=" KEY, "PLAIN_TOKEN=template",
                                          "B=2", NULL};

/* ---- what the program is when it is started again -------------------------------- */

static int say(const char *what, bool right)
{
    if (!right)
        fprintf(stderr, "%s\n", what);
    return right ? 0 : 1;
}

/* The block itself: its first bytes stay where they were whatever environ says later. */
static bool block_has(const char *block, size_t len, const char *word)
{
    return memmem(block, len, word, strlen(word)) != NULL;
}

static int as_child(void)
{
    extern char **environ;
    char *block = environ[0], file[4096] = "";
    size_t len = (size_t)(environ[3] + strlen(environ[3]) - block);
    FILE *proc;
    int bad = 0, status = 1;
    pid_t pid;

    bad += say("the block did not have the key", block_has(block, len, KEY));
    vault_open();
    bad += say("the block still has the key", !block_has(block, len, KEY));
    bad += say("the block still has the other", !block_has(block, len, "template"));
    proc = fopen("/proc/self/environ", "r"); /* only root may, now that we are private */
    if (proc) {
        len = fread(file, 1, sizeof(file), proc);
        fclose(proc);
        bad += say("/proc still has the key", !block_has(file, len, "planted"));
        bad += say("/proc lost the rest", block_has(file, len, "B=2"));
    }
    bad += say("getenv still has it", !getenv("OPENAI_API_KEY"));
    bad += say("another variable is gone", getenv("A") && getenv("B"));
    bad += say("the vault has not got it",
               vault_get("OPENAI_API_KEY") && !strcmp(vault_get("OPENAI_API_KEY"), KEY));
#ifndef __SANITIZE_ADDRESS__
    bad += say("it can be dumped", prctl(PR_GET_DUMPABLE) == 0);
#endif
    pid = fork();
    if (pid == 0)
        _exit(vault_get("OPENAI_API_KEY") != NULL);
    bad += say("a forked process has it", waitpid(pid, &status, 0) == pid && status == 0);
    return bad;
}

/* ---- tests ------------------------------------------------------------------------- */

static void a_key_is_wiped_from_the_block_that_proc_shows(void **state)
{
    const char *argv[] = {"/proc/self/exe", "child", NULL};
    struct proc_spec spec = {.argv = argv, .clean_env = true, .env = environment};
    struct arena *a = arena_new();
    struct proc_result r;
    struct error err = {0};
    char self[4096] = "";

    (void)state;
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    argv[0] = self;
    assert_true(proc_run(&spec, a, &r, &err));
    if (r.end != PROC_EXITED || r.code != 0)
        fail_msg("%s: %s", proc_end_text(&r, a), r.err.data);
    arena_free(a);
}

static const struct {
    const char *name, *text, *want;
} cases[] = {
    {"nothing to find", "a compiler's words", "a compiler's words"},
    {"as it is, twice", "x " KEY " y " KEY, "x [key] y [key]"},
    {"hex", "736b2d706c616e7465642f346639632b326537612238310a", "[key]0a"},
    {"hex in capitals", "736B2D706C616E7465642F346639632B32653761223831", "[key]"},
    {"URL-encoded", "k=sk-planted%2F4f9c%2B2e7a%2281&", "k=[key]&"},
    {"URL-encoded in small letters", "k=sk-planted%2f4f9c%2b2e7a%2281&", "k=[key]&"},
    {"in JSON", "{\"k\": \"sk-planted/4f9c+2e7a\\\"81\"}", "{\"k\": \"[key]\"}"},
    {"cut at the end", "error: sk-planted/4f9", "error: [key]"},
    {"cut at the beginning", "4f9c+2e7a\"81 was the key", "[key] was the key"},
    {"less than can be told", "sk-plan", "sk-plan"},
    {"a word that a variable happens to have", "template <class T>", "template <class T>"},
};

static void every_spelling_of_a_key_is_scrubbed(void **state)
{
    struct arena *a = arena_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct text t = vault_scrub(text_of(cases[i].text), a);

        if (t.len != strlen(cases[i].want) || memcmp(t.data, cases[i].want, t.len) != 0)
            fail_msg("%s: %s", cases[i].name, t.data);
    }
    arena_free(a);
}

static void encode(const char *in, size_t len, const char *last_two, char *out)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    for (size_t i = 0; i < len; i += 3) {
        uint32_t g = (uint32_t)(unsigned char)in[i] << 16;

        g |= i + 1 < len ? (uint32_t)(unsigned char)in[i + 1] << 8 : 0;
        g |= i + 2 < len ? (unsigned char)in[i + 2] : 0;
        for (int k = 0; k < 4; k++) {
            uint32_t six = g >> (18 - 6 * k) & 63;

            *out++ = six < 62 ? letters[six] : last_two[six - 62];
        }
    }
    *out = '\0';
}

/* What is left of the encoded key is less than a group at each end. */
static void base64_is_found_wherever_the_key_begins(void **state)
{
    struct arena *a = arena_new();
    char plain[128], coded[256], bare[256];

    (void)state;
    for (int before = 0; before < 7; before++) {
        snprintf(plain, sizeof(plain), "%.*s%s%s", before, "A=1;B=2", KEY, ";C=3");
        for (int url = 0; url < 2; url++) {
            struct text t;

            encode(plain, strlen(plain), url ? "-_" : "+/", coded);
            t = vault_scrub(text_of(coded), a);
            assert_non_null(strstr(t.data, "[key]"));
            for (size_t i = 0; i < 3; i++) { /* no six characters of it are left */
                encode(&KEY[i], strlen(KEY) - i, url ? "-_" : "+/", bare);
                for (size_t k = 0; k + 12 < strlen(bare); k++)
                    assert_null(memmem(t.data, t.len, bare + k, 8));
            }
        }
    }
    arena_free(a);
}

static void what_a_program_says_and_what_is_written_is_scrubbed(void **state)
{
    const char *argv[] = {"/bin/sh", "-c", "printf '%s' \"$0\"; printf '%s' \"$0\" >&2", KEY, NULL};
    struct proc_spec spec = {.argv = argv};
    struct arena *a = arena_new();
    struct error err = {0};
    struct proc_result r;
    struct text back;
    char *dir, *path;

    (void)state;
    assert_true(proc_run(&spec, a, &r, &err));
    assert_string_equal(r.out.data, "[key]");
    assert_string_equal(r.err.data, "[key]");
    assert_true(dir_temp("test-vault", a, &dir, &err));
    path = path_join(a, dir, "file");
    assert_true(file_write(path, text_of("<" KEY ">"), &err));
    assert_true(file_read(path, 100, a, &back, &err));
    assert_string_equal(back.data, "<[key]>");
    assert_true(dir_remove(dir, &err));
    arena_free(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_wiped_from_the_block_that_proc_shows),
        cmocka_unit_test(every_spelling_of_a_key_is_scrubbed),
        cmocka_unit_test(base64_is_found_wherever_the_key_begins),
        cmocka_unit_test(what_a_program_says_and_what_is_written_is_scrubbed),
    };

    if (argc == 2 && strcmp(argv[1], "child") == 0)
        return as_child();
    vault_keep("a test", KEY, strlen(KEY));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
