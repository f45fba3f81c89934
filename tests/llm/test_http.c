/*
 * test_http.c - every fault a provider can show, over real sockets, and what becomes of it.
 *
 * The table is the one of docs/models.md. Each row is played in all three
 * dialects unless it says otherwise.
 */
#include "support.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY   "sk-planted-0123456789abcdef"
#define REPLY "Hello from the model.\n```cpp\nint x = 1;\n```\n"
#define WHOLE "```cpp\nint first_line_of_the_kernel = 1;\nint second_line_of_the_kernel = 2;\n```\n"

static struct fault_server server;
static char *work;
static struct arena *scope;

static const char *const specs[] = {"openai:m", "responses:m", "anthropic:m"};

static const struct fault_case {
    const char *scenario;
    const char *reply; /* NULL: an error */
    const char *says;  /* in the error or its hint */
    int retries;       /* of the reply */
    int requests;      /* that the server saw; 0: not asked */
    int dialects;      /* bits; 0: all */
    int stall_ms;      /* 0: the server is waited for */
} cases[] = {
    {"ok", REPLY, NULL, 0, 1, 0, 0},
    {"whole", REPLY, NULL, 0, 1, 0, 0},
    {"comments", REPLY, NULL, 0, 1, 0, 0},
    {"no-usage", REPLY, NULL, 0, 1, 0, 0},
    {"429-once", REPLY, NULL, 1, 2, 0, 0},
    {"429-forever", NULL, "status 429: slow down", 0, 3, 0, 0},
    {"429-quota", NULL, "waiting does not help", 0, 1, 0, 0},
    {"429-long", NULL, "wait 86400 s", 0, 1, 0, 0},
    {"500-once", REPLY, NULL, 1, 2, 0, 0},
    {"503-forever", NULL, "status 503: overloaded", 0, 3, 0, 0},
    {"stall-once", REPLY, NULL, 1, 2, 0, 1000},
    {"stall", NULL, "sent nothing for 1000 ms", 0, 3, 1, 1000},
    {"silent", NULL, "sent nothing for 1000 ms", 0, 3, 1, 1000},
    {"cut-once", REPLY, NULL, 1, 2, 0, 0},
    {"cut", NULL, "in the middle", 0, 3, 0, 0},
    {"cut-clean", NULL, "ends in the middle", 0, 3, 0, 0},
    {"reset", NULL, "in the middle", 0, 0, 0, 0},
    {"bad-sse-once", REPLY, NULL, 1, 2, 0, 0},
    {"bad-sse", NULL, "malformed: an event is not JSON", 0, 3, 0, 0},
    {"html", NULL, "a web page, not JSON", 0, 3, 0, 0},
    {"html-502", NULL, "status 502", 0, 3, 0, 0},
    {"empty-once", REPLY, NULL, 1, 2, 0, 0},
    {"empty", NULL, "the reply is empty", 0, 3, 0, 0},
    {"nothing", NULL, "the answer is empty", 0, 3, 0, 0},
    {"wrong-json", NULL, "not JSON", 0, 3, 0, 0},
    {"other-json", NULL, "no end", 0, 3, 0, 0},
    {"continued", WHOLE, NULL, 0, 2, 0, 0},
    {"length-forever",
     "(the reply was cut at the limit of 1000 tokens even after 3 continuations; "
     "it is not used)",
     NULL, 0, 4, 0, 0},
    {"reasoning", REPLY, NULL, 0, 2, 0, 0},
    {"huge", NULL, "larger than 1048576 bytes", 0, 1, 0, 0},
    {"redirect", NULL, "the key is not sent there", 0, 1, 0, 0},
    {"picky", REPLY, NULL, 0, 0, 0, 0},
    {"small-context", REPLY, NULL, 0, 3, 0, 0},
    {"temperature-maximum", REPLY, NULL, 0, 2, 0, 0},
    {"model-limit", REPLY, NULL, 0, 2, 0, 0},
    {"nothing-to-change", NULL, "number of images", 0, 1, 0, 0},
    {"tool-call-once", REPLY, NULL, 1, 2, 0, 0},
    {"stream-error-once", REPLY, NULL, 1, 2, 0, 0},
    {"stream-error", NULL, "Overloaded", 0, 3, 0, 0},
    {"404", NULL, "check the model's name", 0, 1, 0, 0},
    {"leak", NULL, "is not accepted", 0, 1, 0, 0},
    {"leak-reply", "your key is [key], they say\n", NULL, 0, 1, 0, 0},
};

static bool case_holds(const struct fault_case *c, int dialect)
{
    struct arena *a = arena_new();
    const char *url = server_url(&server, c->scenario, a);
    struct llm_config config = quick_config(specs[dialect], url);
    struct error err = {0};
    struct reply r;
    bool ok, holds;
    int seen;

    if (strcmp(c->scenario, "temperature-maximum") == 0)
        config.temperature = 5;
    if (strcmp(c->scenario, "picky") == 0) {
        config.temperature = 0.5;
        config.effort = "high";
        config.max_output_tokens = 4000;
    }
    if (c->stall_ms) {
        config.stall_ms = c->stall_ms;
        config.max_retries = c->reply ? 100 : config.max_retries; /* of a slow machine, too */
    }
    ok = quick_ask(&config, a, &r, &err);
    seen = server_log_wait(&server, strstr(url + 8, "/"), c->requests);
    if (c->reply)
        holds = ok && text_equal(r.text, text_of(c->reply)) &&
                (c->stall_ms ? r.retries >= c->retries : r.retries == c->retries);
    else
        holds = !ok && (strstr(err.text, c->says) || strstr(err.hint, c->says));
    holds &= !c->requests || (c->reply && c->stall_ms ? seen >= c->requests : seen == c->requests);
    holds &= !strstr(err.text, KEY) && !strstr(err.hint, KEY);
    if (!holds)
        print_error("%s %s: %s, %d requests, %d retries: %.200s / %s / %s\n", specs[dialect],
                    c->scenario, ok ? "reply" : "error", seen, r.retries, ok ? r.text.data : "",
                    err.text, err.hint);
    arena_free(a);
    return holds;
}

static void every_fault_has_its_behaviour_in_every_dialect(void **state)
{
    int bad = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int d = 0; d < 3; d++)
            if (!cases[i].dialects || cases[i].dialects & 1 << d)
                bad += !case_holds(&cases[i], d);
    assert_int_equal(bad, 0);
}

static void tokens_and_their_cached_share_are_reported(void **state)
{
    static const int64_t prompt[] = {100, 100, 100};

    (void)state;
    for (int d = 0; d < 3; d++) {
        struct arena *a = arena_new();
        struct llm_config c = quick_config(specs[d], server_url(&server, "ok", a));
        struct error err = {0};
        struct reply r;

        assert_true(quick_ask(&c, a, &r, &err));
        assert_int_equal(r.prompt_tokens, prompt[d]);
        assert_int_equal(r.cached_tokens, 64);
        assert_int_equal(r.output_tokens, 20);
        assert_true(r.cost_usd < 0); /* another server's price is unknown, not zero */
        assert_string_equal(r.model, "fault-1");
        assert_string_equal(r.finish_reason, "stop");
        arena_free(a);
    }
}

/* The first attempt is answered without text: paid for, and asked again. */
static void tokens_of_failed_attempts_are_counted(void **state)
{
    (void)state;
    for (int d = 0; d < 3; d++) {
        struct arena *a = arena_new();
        struct llm_config c = quick_config(specs[d], server_url(&server, "tool-call-once", a));
        struct budget_limits limits = {.tokens = 100000};
        struct budget_spent spent;
        struct error err = {0};
        struct reply r;

        assert_true(budget_open(NULL, &limits, &c.budget, &err));
        assert_true(quick_ask(&c, a, &r, &err));
        assert_int_equal(r.prompt_tokens, 200);
        assert_int_equal(r.output_tokens, 40);
        assert_true(budget_spent(c.budget, &spent, &err));
        assert_int_equal(spent.tokens, 240);
        budget_close(c.budget);
        arena_free(a);
    }
}

/* Prices of a million tokens: input 1, output 10. A prompt that was wasted costs what a prompt
 * costs.
 */
static void a_wasted_prompt_is_billed_as_a_prompt(void **state)
{
    static const char prices[] =
        "{\"models\": {\"openai:m\": {\"input\": 1, \"cached\": 1, \"output\": 10}}}";
    struct arena *a = arena_new();
    struct llm_config c = quick_config("openai:m", server_url(&server, "tool-call-once", a));
    struct error err = {0};
    struct reply r;
    char *dir, *path;

    (void)state;
    assert_true(dir_temp("prices", a, &dir, &err));
    path = path_join(a, dir, "prices.json");
    assert_true(file_write(path, text_of(prices), &err));
    c.price_file = path;
    assert_true(quick_ask(&c, a, &r, &err));
    assert_true(fabs(r.cost_usd - (200 * 1 + 40 * 10) / 1e6) < 1e-9);
    dir_remove(dir, &err);
    arena_free(a);
}

static void a_call_that_is_given_up_says_what_it_cost(void **state)
{
    (void)state;
    for (int d = 0; d < 3; d++) {
        struct arena *a = arena_new();
        struct llm_config c = quick_config(specs[d], server_url(&server, "cut", a));
        struct error err = {0};
        struct reply r = {0};

        assert_false(quick_ask(&c, a, &r, &err));
        assert_string_equal(r.finish_reason, LLM_FAILED);
        assert_true(r.prompt_tokens > 0);
        assert_true(r.output_tokens > 0);
        arena_free(a);
    }
}

/* What is said on stderr when an llm with a key is opened at this address. */
static bool warns_about(const char *url)
{
    struct arena *a = arena_new();
    struct llm_config c = quick_config("openai:m", url);
    struct error err = {0};
    struct llm *llm = NULL;
    FILE *caught = tmpfile();
    int kept = dup(2);
    char said[2000] = "";

    fflush(stderr);
    dup2(fileno(caught), 2);
    assert_true(llm_open(&c, &llm, &err));
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
    rewind(caught);
    (void)!fread(said, 1, sizeof(said) - 1, caught);
    fclose(caught);
    llm_close(llm);
    arena_free(a);
    return strstr(said, "unencrypted") != NULL;
}

static void only_this_machine_counts_as_local(void **state)
{
    static const struct {
        const char *url;
        bool warns;
    } rows[] = {
        {"http://localhost/v1", false},         {"http://localhost:8000/v1", false},
        {"http://127.0.0.1:8000/v1", false},    {"http://127.3.2.1/v1", false},
        {"http://[::1]:8000/v1", false},        {"http://localhost.evil.example/v1", true},
        {"http://127.evil.example/v1", true},   {"http://127.0.0.1.evil.example/v1", true},
        {"http://[::1].evil.example/v1", true}, {"http://10.0.0.1/v1", true},
        {"https://evil.example/v1", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (warns_about(rows[i].url) != rows[i].warns)
            fail_msg("%s", rows[i].url);
}

static void retry_after_is_obeyed_in_seconds_and_as_a_date(void **state)
{
    static const char *const scenarios[] = {"429-after", "429-date"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct arena *a = arena_new();
        struct llm_config c = quick_config("openai:m", server_url(&server, scenarios[i], a));
        struct error err = {0};
        struct reply r;
        int64_t begin = clock_ms();

        assert_true(quick_ask(&c, a, &r, &err));
        assert_in_range(clock_ms() - begin, 900, 2 * PATIENCE_MS);
        arena_free(a);
    }
}

static void a_slow_drip_ends_at_the_deadline_and_not_later(void **state)
{
    struct arena *a = arena_new();
    struct llm_config c = quick_config("openai:m", server_url(&server, "drip", a));
    struct error err = {0};
    struct reply r;
    int64_t begin = clock_ms();

    (void)state;
    c.total_ms = 1500;
    assert_false(quick_ask(&c, a, &r, &err));
    assert_non_null(strstr(err.text, "not complete within 2 s"));
    assert_in_range(clock_ms() - begin, 1400, PATIENCE_MS); /* the drip has no end */
    arena_free(a);
}

static void a_huge_reply_is_not_kept_in_memory(void **state)
{
    struct arena *a = arena_new();
    struct llm_config c = quick_config("openai:m", server_url(&server, "huge", a));
    struct error err = {0};
    struct rusage before, after;
    struct reply r;

    (void)state;
    getrusage(RUSAGE_SELF, &before);
    assert_false(quick_ask(&c, a, &r, &err));
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 64 * 1024);
    arena_free(a);
}

static void no_server_no_name_and_no_such_scheme_are_told_apart(void **state)
{
    static const struct {
        const char *url, *says;
    } rows[] = {
        {"http://127.0.0.1:1/v1", "no connection to 127.0.0.1:1"},
        {"http://no-such-host.invalid/v1", "cannot be resolved"},
        {"ftp://127.0.0.1/v1", "neither http:// nor https://"},
        {"http://me:secret@127.0.0.1/v1", "user name or password"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena *a = arena_new();
        struct llm_config c = quick_config("openai:m", rows[i].url);
        struct error err = {0};
        struct reply r;

        c.max_retries = 1;
        assert_false(quick_ask(&c, a, &r, &err));
        if (!strstr(err.text, rows[i].says))
            fail_msg("%s: %s", rows[i].url, err.text);
        arena_free(a);
    }
}

static void a_server_that_accepts_and_says_nothing_ends_at_the_stall_limit(void **state)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct arena *a = arena_new();
    struct error err = {0};
    struct llm_config c;
    struct reply r;

    (void)state;
    assert_int_equal(bind(s, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(s, 8), 0);
    assert_int_equal(getsockname(s, (struct sockaddr *)&addr, &len), 0);
    c = quick_config("openai:m", arena_printf(a, "http://127.0.0.1:%d/v1", ntohs(addr.sin_port)));
    c.max_retries = 0;
    c.stall_ms = 500;
    assert_false(quick_ask(&c, a, &r, &err));
    assert_non_null(strstr(err.text, "sent nothing for"));
    close(s);
    arena_free(a);
}

static void a_redirect_does_not_carry_the_key_to_another_host(void **state)
{
    struct arena *a = arena_new();
    const char *url = server_url(&server, "redirect", a);
    struct llm_config c = quick_config("openai:m", url);
    struct error err = {0};
    struct reply r;
    char other[64];

    (void)state;
    assert_false(quick_ask(&c, a, &r, &err));
    snprintf(other, sizeof(other), "/ok%s", strrchr(url, '/')); /* where it points to */
    assert_int_equal(server_log_count(&server, other), 0);
    arena_free(a);
}

static void a_proxy_is_used_when_given(void **state)
{
    struct arena *a = arena_new();
    struct llm_config c = quick_config("openai:m", "http://model.invalid/ok/proxy");
    struct error err = {0};
    struct reply r;

    (void)state;
    c.proxy = arena_printf(a, "http://127.0.0.1:%d", server.port);
    if (!quick_ask(&c, a, &r, &err))
        fail_msg("%s", err.text);
    assert_string_equal(r.text.data, REPLY);
    assert_int_equal(server_log_count(&server, "http://model.invalid/ok/proxy/chat"), 1);
    arena_free(a);
}

/* openssl makes the certificate; without it the test is skipped. */
static void tls_with_an_unknown_authority_fails_at_once_and_works_with_its_file(void **state)
{
    struct arena *a = arena_new();
    char *cert = path_join(a, work, "cert.pem"), *key = path_join(a, work, "key.pem");
    char *program = path_find_program(a, "openssl");
    struct fault_server tls;
    pid_t pid;
    struct error err = {0};
    struct llm_config c;
    struct reply r;

    (void)state;
    if (!program) {
        arena_free(a);
        skip();
    }
    pid = fork();
    if (pid == 0) {
        freopen("/dev/null", "w", stderr);
        execl(program, "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
              "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
              "-keyout", key, "-out", cert, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
    server_start(&tls, work, cert, key);
    for (size_t d = 0; d < ARRAY_LEN(specs); d++) {
        const char *base = arena_printf(a, "https://127.0.0.1:%d", tls.port);

        memset(&err, 0, sizeof(err));
        c = quick_config(specs[d], arena_printf(a, "%s/ok/tls%zu", base, d));
        assert_false(quick_ask(&c, a, &r, &err));
        if (!strstr(err.text, "TLS with 127.0.0.1") || strstr(err.text, "attempts"))
            fail_msg("%s: %s", specs[d], err.text);
        assert_int_equal(server_log_count(&tls, arena_printf(a, "/ok/tls%zu", d)), 0);
        c.ca_file = cert;
        memset(&err, 0, sizeof(err));
        if (!quick_ask(&c, a, &r, &err))
            fail_msg("%s: %s", specs[d], err.text);
        assert_string_equal(r.text.data, REPLY);
        /* Faults over TLS are what they are without. */
        c = quick_config(specs[d], arena_printf(a, "%s/429-once/tls%zu", base, d));
        c.ca_file = cert;
        if (!quick_ask(&c, a, &r, &err))
            fail_msg("%s: %s", specs[d], err.text);
        assert_int_equal(r.retries, 1);
        c = quick_config(specs[d], arena_printf(a, "%s/redirect/tls%zu", base, d));
        c.ca_file = cert;
        assert_false(quick_ask(&c, a, &r, &err));
        if (!strstr(err.text, "the key is not sent there"))
            fail_msg("%s: %s", specs[d], err.text);
    }
    server_stop(&tls);
    arena_free(a);
}

static void collect(void *ctx, const char *text, size_t len)
{
    buf_add(ctx, text, len);
}

static void text_is_handed_on_while_it_arrives(void **state)
{
    struct arena *a = arena_new();
    struct llm_config c = quick_config("anthropic:m", server_url(&server, "ok", a));
    struct buf got = buf_init(1 << 16);
    struct error err = {0};
    struct reply r;

    (void)state;
    c.on_text = collect;
    c.on_text_ctx = &got;
    assert_true(quick_ask(&c, a, &r, &err));
    assert_string_equal(got.data, REPLY);
    buf_release(&got);
    arena_free(a);
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

static void an_interrupt_ends_a_call_at_once(void **state)
{
    struct arena *a = arena_new();
    struct llm_config c = quick_config("openai:m", server_url(&server, "silent", a));
    char record[] = "/tmp/cutegen-interrupt-XXXXXX";
    struct error err = {0}, later = {0};
    struct text lines;
    struct reply r;
    int64_t begin = clock_ms();

    (void)state;
    close(mkstemp(record));
    c.record_file = record;
    c.interrupted = always;
    assert_false(quick_ask(&c, a, &r, &err));
    assert_int_equal(err.kind, ERROR_INTERRUPTED);
    assert_in_range(clock_ms() - begin, 0, PATIENCE_MS); /* the server never answers */
    /* What is known of it is told, and recorded; a replay passes over it. */
    assert_string_equal(r.finish_reason, LLM_INTERRUPTED);
    assert_int_equal(r.text.len, 0);
    assert_true(r.cost_usd < 0);
    assert_true(file_read(record, 1 << 20, a, &lines, &later));
    assert_non_null(strstr(lines.data, "\"finish_reason\":\"interrupted\""));
    c = quick_config(arena_printf(a, "replay:%s", record), NULL);
    assert_true(quick_ask(&c, a, &r, &later));
    assert_true(r.done || strstr(r.text.data, "no diagnosis"));
    unlink(record);
    arena_free(a);
}

static void a_reply_cut_by_the_end_of_the_budget_is_told_as_that(void **state)
{
    struct arena *a = arena_new();
    struct llm_config c = quick_config("openai:m", server_url(&server, "length-forever", a));
    struct budget_limits limits = {.tokens = 600};
    struct budget_spent spent;
    struct error err = {0};
    struct reply r;

    (void)state;
    assert_true(budget_open(NULL, &limits, &c.budget, &err));
    assert_false(quick_ask(&c, a, &r, &err));
    assert_int_equal(err.kind, ERROR_BUDGET);
    assert_non_null(strstr(err.text, "not enough for a complete reply"));
    memset(&err, 0, sizeof(err));
    assert_true(budget_spent(c.budget, &spent, &err));
    assert_int_equal(spent.tokens, 120); /* as the server said, not as reserved */
    budget_close(c.budget);
    arena_free(a);
}

static int setup(void **state)
{
    struct error err = {0};

    (void)state;
    scope = arena_new();
    setenv("OPENAI_API_KEY", KEY, 1);
    setenv("ANTHROPIC_API_KEY", KEY, 1);
    unsetenv("http_proxy");
    if (!dir_temp("llm", scope, &work, &err))
        return -1;
    server_start(&server, work, NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    struct error err = {0};

    (void)state;
    server_stop(&server);
    dir_remove(work, &err);
    arena_free(scope);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_has_its_behaviour_in_every_dialect),
        cmocka_unit_test(tokens_and_their_cached_share_are_reported),
        cmocka_unit_test(tokens_of_failed_attempts_are_counted),
        cmocka_unit_test(a_wasted_prompt_is_billed_as_a_prompt),
        cmocka_unit_test(a_call_that_is_given_up_says_what_it_cost),
        cmocka_unit_test(only_this_machine_counts_as_local),
        cmocka_unit_test(retry_after_is_obeyed_in_seconds_and_as_a_date),
        cmocka_unit_test(a_slow_drip_ends_at_the_deadline_and_not_later),
        cmocka_unit_test(a_huge_reply_is_not_kept_in_memory),
        cmocka_unit_test(no_server_no_name_and_no_such_scheme_are_told_apart),
        cmocka_unit_test(a_server_that_accepts_and_says_nothing_ends_at_the_stall_limit),
        cmocka_unit_test(a_redirect_does_not_carry_the_key_to_another_host),
        cmocka_unit_test(a_proxy_is_used_when_given),
        cmocka_unit_test(tls_with_an_unknown_authority_fails_at_once_and_works_with_its_file),
        cmocka_unit_test(text_is_handed_on_while_it_arrives),
        cmocka_unit_test(an_interrupt_ends_a_call_at_once),
        cmocka_unit_test(a_reply_cut_by_the_end_of_the_budget_is_told_as_that),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
