/* test_seam.c - replay, exec, recording, prices, budgets and keys: the seam without a network. */
#include "support.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "llm/price.h"
#include "llm/provider/provider.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "sk-planted-9876543210fedcba"

static char *work;
static struct arena *scope;

static const char *put(const char *name, const char *text)
{
    struct error err = {0};
    char *path = path_join(scope, work, name);

    if (!file_write(path, text_of(text), &err))
        fail_msg("%s", err.text);
    return path;
}

static struct llm *open_model(const char *spec, struct error *err)
{
    struct llm_config c = quick_config(spec, NULL);
    struct llm *llm = NULL;

    return llm_open(&c, &llm, err) ? llm : NULL;
}

static const char *ask(struct llm *llm, enum stage_kind stage, const char *prompt, struct reply *r,
                       struct error *err)
{
    struct message m;
    struct request req = quick_request(stage, prompt, &m);

    memset(r, 0, sizeof(*r));
    return llm_ask(llm, &req, scope, r, err) ? r->text.data : NULL;
}

/* ---- replay ----------------------------------------------------------------------- */

static void a_transcript_by_hand_is_played_by_stage_in_order(void **state)
{
    const char *file = put("hand.jsonl", "# a comment\n"
                                         "{\"stage\":\"synthesize\",\"reply\":\"first\"}\n\n"
                                         "{\"stage\":\"optimize\",\"reply\":[\"a\",\"b\"]}\n"
                                         "{\"stage\":\"repair\",\"reply_file\":\"repair.md\"}\n"
                                         "{\"reply\":\"any\",\"output_tokens\":7}\n");
    struct error err = {0};
    struct reply r;
    struct llm *llm;

    (void)state;
    put("repair.md", "from a file");
    llm = open_model(arena_printf(scope, "replay:%s", file), &err);
    assert_non_null(llm);
    assert_string_equal(ask(llm, STAGE_SYNTHESIZE, "x", &r, &err), "first");
    assert_string_equal(ask(llm, STAGE_REPAIR, "x", &r, &err), "from a file");
    assert_string_equal(ask(llm, STAGE_OPTIMIZE, "x", &r, &err), "a\nb\n");
    assert_false(r.done);
    assert_string_equal(ask(llm, STAGE_OPTIMIZE, "x", &r, &err), "any");
    assert_int_equal(r.output_tokens, 7);
    assert_non_null(strstr(ask(llm, STAGE_DIAGNOSE, "x", &r, &err), "no diagnosis"));
    assert_false(r.done);
    assert_non_null(strstr(ask(llm, STAGE_OPTIMIZE, "x", &r, &err), "no further reply"));
    assert_true(r.done);
    llm_close(llm);
}

static void what_was_recorded_is_played_back_and_an_unknown_prompt_is_shown(void **state)
{
    char *file = path_join(scope, work, "recorded.jsonl");
    struct llm_config c = quick_config("exec:printf 'answer to '; tail -c 3", NULL);
    struct error err = {0};
    struct llm *llm;
    struct reply r;

    (void)state;
    c.record_file = file;
    assert_true(llm_open(&c, &llm, &err));
    assert_string_equal(ask(llm, STAGE_SYNTHESIZE, "p one\nabc", &r, &err), "answer to abc");
    assert_string_equal(ask(llm, STAGE_REPAIR, "time 12.5 us, seed 81c3\nthe two", &r, &err),
                        "answer to two");
    llm_close(llm);
    llm = open_model(arena_printf(scope, "replay:%s", file), &err);
    assert_non_null(llm);
    /* figures differ from run to run: still known */
    assert_string_equal(ask(llm, STAGE_REPAIR, "time 13.25 us, seed 0f\nthe two", &r, &err),
                        "answer to two");
    assert_null(ask(llm, STAGE_SYNTHESIZE, "p one\nabd", &r, &err));
    assert_int_equal(err.kind, ERROR_USE);
    assert_non_null(strstr(err.text, "line 2: recorded \"abc\", now \"abd\""));
    memset(&err, 0, sizeof(err));
    assert_string_equal(ask(llm, STAGE_SYNTHESIZE, "p one\nabc", &r, &err), "answer to abc");
    ask(llm, STAGE_SYNTHESIZE, "p one\nabc", &r, &err);
    assert_true(r.done);
    llm_close(llm);
}

static void a_recalled_answer_uses_up_its_entry(void **state)
{
    const char *file = put("recall.jsonl", "{\"stage\":\"repair\",\"reply\":\"one\"}\n"
                                           "{\"stage\":\"repair\",\"reply\":\"two\"}\n");
    struct error err = {0};
    struct reply r, known = {0};
    struct message m;
    struct request req = quick_request(STAGE_REPAIR, "x", &m);
    struct llm *llm = open_model(arena_printf(scope, "replay:%s", file), &err);

    (void)state;
    assert_true(llm_recall(llm, &req, &known, &err));
    assert_string_equal(ask(llm, STAGE_REPAIR, "x", &r, &err), "two");
    llm_close(llm);
}

static void a_broken_transcript_is_refused_with_its_line(void **state)
{
    static const char *const bad[] = {"{\"reply\":\"x\"}\n{oops\n", "{\"reply\":\"x\"}\n{}\n",
                                      "{\"reply\":\"x\"}\n[1]\n",
                                      "{\"reply\":\"x\"}\n{\"reply_file\":\"absent\"}\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err = {0};

        assert_null(open_model(arena_printf(scope, "replay:%s", put("bad.jsonl", bad[i])), &err));
        if (!strstr(err.text, "bad.jsonl:2"))
            fail_msg("%s", err.text);
    }
}

/* ---- exec -------------------------------------------------------------------------- */

static void a_command_gets_the_prompt_and_no_key(void **state)
{
    struct error err = {0};
    struct reply r;
    struct llm *llm;

    (void)state;
    llm = open_model("exec:cat; env; echo stage=$CUTEGEN_STAGE", &err);
    assert_non_null(ask(llm, STAGE_OPTIMIZE, "the prompt", &r, &err));
    assert_true(text_starts(r.text, "the prompt"));
    assert_non_null(strstr(r.text.data, "stage=optimize"));
    assert_null(strstr(r.text.data, KEY));
    assert_int_equal(r.prompt_tokens, -1);
    assert_true(r.cost_usd < 0);
    llm_close(llm);
}

static void a_command_that_fails_hangs_or_floods_is_an_error(void **state)
{
    static const struct {
        const char *spec, *says;
        int total_ms; /* 0: more than it needs */
    } rows[] = {
        {"exec:echo went wrong >&2; exit 3", "went wrong", 0},
        {"exec:kill -9 $$", "SIGKILL", 0},
        {"exec:sleep 3600", "no end within", 1000},
        {"exec:head -c 3000000 /dev/zero", "more than 1048576 bytes", 0},
        {"exec:true", "the reply is empty", 0},
        {"exec:", "without a command", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct llm_config c = quick_config(rows[i].spec, NULL);
        struct error err = {0};
        struct reply r;

        c.total_ms = rows[i].total_ms ? rows[i].total_ms : c.total_ms;
        assert_false(quick_ask(&c, scope, &r, &err));
        if (!strstr(err.text, rows[i].says))
            fail_msg("%s: %s", rows[i].spec, err.text);
    }
}

static bool at_once(void *ctx)
{
    (void)ctx;
    return true;
}

static void a_command_ends_when_interrupted(void **state)
{
    struct arena *a = arena_new();
    struct llm_config c = quick_config("exec:sleep 3600", NULL);
    struct error err = {0};
    struct reply r;

    (void)state;
    c.interrupted = at_once;
    assert_false(quick_ask(&c, a, &r, &err));
    assert_int_equal(err.kind, ERROR_INTERRUPTED);
    assert_string_equal(r.finish_reason, LLM_INTERRUPTED);
    arena_free(a);
}

static void an_unknown_model_is_wrong_use(void **state)
{
    static const char *const specs[] = {"gpt", "openai", "openai:", "builtin", "", "foo:bar"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        struct error err = {0};

        assert_null(open_model(specs[i], &err));
        assert_int_equal(err.kind, ERROR_USE);
    }
}

/* ---- prices ------------------------------------------------------------------------- */

static void a_price_is_the_models_own_or_unknown(void **state)
{
    static const struct {
        const char *scheme, *model;
        bool official;
        double input; /* < 0: unknown */
    } rows[] = {
        {"openai", "gpt-5", true, 1.25},      {"responses", "gpt-5-2025-08-07", true, 1.25},
        {"openai", "gpt-5-mini", true, 0.25}, {"openai", "gpt-5-unheard-of", true, -1},
        {"openai", "gpt-5", false, -1},       {"anthropic", "claude-sonnet-4-5-20250929", true, 3},
        {"anthropic", "gpt-5", true, -1},     {"openai", "mine", false, 0.5},
        {"openai", "other", false, 7},        {"anthropic", "other", false, -1},
    };
    struct price_book *book;
    struct error err = {0};

    (void)state;
    assert_true(
        price_open(put("prices.json", "{\"date\":\"2026-01-31\",\"models\":{"
                                      "\"mine\":{\"input\":0.5,\"output\":1},"
                                      "\"openai:other\":{\"input\":7,\"cached\":1,\"output\":8}}}"),
                   scope, &book, &err));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct price *p = price_find(book, rows[i].scheme, rows[i].model, rows[i].official);

        if (rows[i].input < 0 ? p != NULL : !p || p->input != rows[i].input)
            fail_msg("%s %s", rows[i].scheme, rows[i].model);
    }
    assert_true(price_cost(price_find(book, "openai", "other", false), 1000000, 500000, 0,
                           1000000) == 7 * 0.5 + 1 * 0.5 + 8);
    assert_true(price_cost(NULL, 1, 0, 0, 1) < 0);
    assert_true(price_cost(price_find(book, "openai", "mine", false), -1, -1, -1, 5) < 0);
    assert_false(price_open(put("p2.json", "{\"models\":{\"x\":{\"input\":-1,\"output\":1}}}"),
                            scope, &book, &err));
    assert_non_null(strstr(err.text, "price of x"));
}

/* ---- budgets -------------------------------------------------------------------------- */

static const struct budget_want plain = {
    .prompt_tokens = 100,
    .output_tokens = 1000,
    .usd_per_prompt_token = 1e-6,
    .usd_per_output_token = 1e-5,
};

/* A text that two budgets share, as runs on two machines share a row of the store. */
struct kept_text {
    char text[4096];
    int inside;
};

static bool kept_begin(void *ctx, struct arena *a, struct text *text, struct error *err)
{
    struct kept_text *k = ctx;

    (void)err;
    assert_int_equal(k->inside++, 0);
    *text = text_of(arena_strdup(a, k->text));
    return true;
}

static bool kept_end(void *ctx, const char *changed, struct error *err)
{
    struct kept_text *k = ctx;

    (void)err;
    assert_int_equal(--k->inside, 0);
    if (changed)
        snprintf(k->text, sizeof(k->text), "%s", changed);
    return true;
}

static void budgets_on_two_machines_are_one(void **state)
{
    struct kept_text kept = {.text = ""};
    struct shared_text here = {kept_begin, kept_end, &kept, "/tasks/a.py"},
                       there = {kept_begin, kept_end, &kept, "/tasks/b.py"};
    struct budget_limits limits = {.calls = 3, .tokens = 100000};
    struct budget *a, *b;
    struct budget_grant grant, other;
    struct budget_spent spent;
    struct error err = {0};

    (void)state;
    assert_true(budget_open_shared(&here, &limits, &a, &err));
    assert_true(budget_open_shared(&there, &limits, &b, &err));
    assert_true(budget_reserve(a, &plain, &grant, &err));
    assert_true(budget_reserve(b, &plain, &other, &err));
    budget_settle(b, &other, 700, 0.001);
    assert_true(budget_spent(a, &spent, &err));
    assert_int_equal(spent.calls, 2);
    assert_int_equal(spent.tokens, 700);
    /* The first is killed and goes on elsewhere: what it held counts, and is not held any more. */
    budget_close(a);
    assert_true(budget_open_shared(&here, &limits, &a, &err));
    assert_true(budget_spent(b, &spent, &err));
    assert_int_equal(spent.tokens, 700 + grant.prompt_tokens + grant.output_tokens);
    assert_true(budget_reserve(a, &plain, &grant, &err));
    assert_false(budget_reserve(b, &plain, &other, &err));
    assert_int_equal(err.kind, ERROR_BUDGET);
    budget_close(a);
    budget_close(b);
}

static void a_budget_ends_calls_tokens_money_and_minutes(void **state)
{
    static const struct {
        struct budget_limits limits;
        int calls; /* that go through */
        const char *says;
    } rows[] = {
        {{.calls = 3}, 3, "budget of 3 calls"},
        {{.tokens = 3500}, 3, "the token budget is spent: 3300 of 3500"},
        {{.usd = 0.0305}, 3, "the money budget is spent"},
        {{.minutes = 1e-9}, 0, "minutes is spent"},
        {{.usd = 0}, 10, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct budget *b;
        struct budget_grant g;
        struct error err = {0};
        int n = 0;

        assert_true(budget_open(NULL, &rows[i].limits, &b, &err));
        usleep(2000);
        while (n < 10 && budget_reserve(b, &plain, &g, &err)) {
            budget_settle(b, &g, 1100, 0.0101);
            n++;
        }
        assert_int_equal(n, rows[i].calls);
        if (rows[i].says) {
            assert_int_equal(err.kind, ERROR_BUDGET);
            if (!strstr(err.text, rows[i].says))
                fail_msg("%s", err.text);
        }
        budget_close(b);
    }
}

static void a_grant_is_never_more_than_what_is_left(void **state)
{
    struct budget_limits limits = {.tokens = 1600};
    struct budget_grant g, h;
    struct error err = {0};
    struct budget_spent spent;
    struct budget *b;

    (void)state;
    assert_true(budget_open(NULL, &limits, &b, &err));
    assert_true(budget_reserve(b, &plain, &g, &err));
    assert_int_equal(g.output_tokens, 1000);
    assert_true(budget_reserve(b, &plain, &h, &err));
    assert_int_equal(h.output_tokens, 400); /* 1600 - 1100 - 100 */
    budget_settle(b, &g, 150, 0.001);
    budget_settle(b, &h, -1, -1); /* unknown: all that was held counts */
    assert_true(budget_spent(b, &spent, &err));
    assert_int_equal(spent.tokens, 150 + 500);
    assert_int_equal(spent.calls, 2);
    assert_true(spent.usd_unknown);
    budget_close(b);
}

enum { WORKERS = 8, CALLS_EACH = 40 };

static void parallel_runs_share_one_budget_through_its_file(void **state)
{
    char *path = path_join(scope, work, "budget.json");
    struct budget_limits limits = {.tokens = 100000, .calls = 200};
    struct budget_spent spent;
    struct error err = {0};
    struct budget *b;
    int granted = 0, status;

    (void)state;
    for (int w = 0; w < WORKERS; w++) {
        if (fork() == 0) {
            int mine = 0;

            if (!budget_open(path, &limits, &b, &err))
                _exit(255);
            for (int i = 0; i < CALLS_EACH; i++) {
                struct budget_grant g;

                if (!budget_reserve(b, &plain, &g, &err))
                    break;
                if (w == 0 && i == 5)
                    _exit(++mine); /* dies in the middle of a call */
                budget_settle(b, &g, g.prompt_tokens + g.output_tokens, 0.001);
                mine++;
            }
            _exit(mine);
        }
    }
    for (int w = 0; w < WORKERS; w++) {
        wait(&status);
        granted += WEXITSTATUS(status);
    }
    assert_true(budget_open(path, &limits, &b, &err));
    assert_true(budget_spent(b, &spent, &err));
    assert_int_equal(spent.calls, granted);
    assert_in_range(granted, 89, 92); /* 100000 tokens at 1100 a call */
    assert_true(spent.tokens <= limits.tokens);
    budget_close(b);
}

/* Whoever is killed leaves the old content or the new: one write, and never a shorter file. */
static void a_budget_file_is_whole_at_every_moment(void **state)
{
    char *path = path_join(scope, work, "whole.json");
    struct budget_limits limits = {.tokens = 10000000};
    struct budget_grant g[40];
    struct error err = {0};
    struct stat before, after;
    struct budget *b;
    struct text text;
    json_t *v;

    (void)state;
    assert_true(budget_open(path, &limits, &b, &err));
    for (size_t i = 0; i < ARRAY_LEN(g); i++)
        assert_true(budget_reserve(b, &plain, &g[i], &err));
    assert_int_equal(stat(path, &before), 0);
    for (size_t i = 0; i < ARRAY_LEN(g); i++)
        budget_settle(b, &g[i], 10, 0);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    assert_true(file_read(path, 1 << 20, scope, &text, &err));
    assert_true(json_parse(text, path, &v, &err));
    assert_int_equal(json_int_or(v, "tokens", 0), 400);
    json_decref(v);
    budget_close(b);
}

static void what_was_spent_before_counts_and_a_pause_does_not(void **state)
{
    char path[] = "/tmp/cutegen-budget-XXXXXX";
    struct budget_limits limits = {.calls = 2, .tokens = 1000}, an_hour = {.minutes = 60};
    struct budget_want want = {.prompt_tokens = 10, .output_tokens = 300};
    struct arena *a = arena_new();
    struct budget_grant grant;
    struct error err = {0};
    struct budget *b;

    (void)state;
    assert_true(budget_open(NULL, &limits, &b, &err));
    budget_charge(b, 500, 0.25); /* a resumed run's first call */
    assert_true(budget_reserve(b, &want, &grant, &err));
    budget_settle(b, &grant, 10, 0);
    assert_false(budget_reserve(b, &want, &grant, &err));
    assert_int_equal(err.kind, ERROR_BUDGET);
    budget_close(b);

    /* A suite that was begun two hours ago and worked for ten seconds of them. */
    memset(&err, 0, sizeof(err));
    close(mkstemp(path));
    assert_true(file_write(path,
                           text_of(arena_printf(a, "{\"started_ms\":%lld,\"last_ms\":%lld}",
                                                (long long)clock_unix_ms() - 7200000,
                                                (long long)clock_unix_ms() - 7190000)),
                           &err));
    assert_true(budget_unpause(path, &err));
    assert_true(budget_open(path, &an_hour, &b, &err));
    assert_true(budget_reserve(b, &want, &grant, &err));
    assert_in_range(grant.minutes_left_ms, 1, 3590001);
    budget_charge(b, 500, 0.25); /* a shared budget knows already */
    budget_close(b);
    unlink(path);
    arena_free(a);
}

static void a_model_without_a_price_and_a_budget_in_dollars_do_not_go_together(void **state)
{
    struct budget_limits limits = {.usd = 1};
    struct llm_config c = quick_config("exec:echo hi", NULL);
    struct error err = {0};
    struct reply r;

    (void)state;
    assert_true(budget_open(NULL, &limits, &c.budget, &err));
    assert_false(quick_ask(&c, scope, &r, &err));
    assert_int_equal(err.kind, ERROR_USE);
    assert_non_null(strstr(err.text, "the price of exec:echo hi is unknown"));
    memset(&err, 0, sizeof(err));
    c.price_file = put("exec-price.json", "{\"models\":{\"echo hi\":{\"input\":1,\"output\":1}}}");
    assert_true(quick_ask(&c, scope, &r, &err));
    budget_close(c.budget);
}

static void a_spent_budget_stops_the_next_call(void **state)
{
    struct budget_limits limits = {.calls = 2};
    struct llm_config c = quick_config("exec:echo hi", NULL);
    struct error err = {0};
    struct reply r;

    (void)state;
    assert_true(budget_open(NULL, &limits, &c.budget, &err));
    assert_true(quick_ask(&c, scope, &r, &err));
    assert_true(quick_ask(&c, scope, &r, &err));
    assert_false(quick_ask(&c, scope, &r, &err));
    assert_int_equal(err.kind, ERROR_BUDGET);
    assert_int_equal(error_exit_code(&err), 4);
    budget_close(c.budget);
}

/* ---- keys ------------------------------------------------------------------------------ */

static void a_key_file_others_can_read_is_refused(void **state)
{
    const char *file = put("key", KEY "\n");
    struct llm_config c = quick_config("openai:m", "http://127.0.0.1:1");
    struct error err = {0};
    struct llm *llm;

    (void)state;
    c.key_file = file;
    chmod(file, 0644);
    assert_false(llm_open(&c, &llm, &err));
    assert_non_null(strstr(err.text, "can be read by others (mode 644)"));
    assert_non_null(strstr(err.hint, "chmod 600"));
    chmod(file, 0600);
    assert_true(llm_open(&c, &llm, &err));
    llm_close(llm);
}

static void a_key_variable_that_children_would_inherit_is_refused(void **state)
{
    struct llm_config c = quick_config("openai:m", "http://127.0.0.1:1");
    struct error err = {0};
    struct llm *llm;

    (void)state;
    setenv("MY_OPENAI", KEY, 1);
    c.key_env = "MY_OPENAI";
    assert_false(llm_open(&c, &llm, &err));
    assert_non_null(strstr(err.hint, "_API_KEY"));
    unsetenv("MY_OPENAI");
}

static void a_missing_key_is_said_before_anything_is_sent(void **state)
{
    struct llm_config c = quick_config("anthropic:claude", NULL);
    struct error err = {0};
    struct llm *llm;

    (void)state;
    c.key_env = "NO_SUCH_API_KEY";
    assert_false(llm_open(&c, &llm, &err));
    assert_non_null(strstr(err.text, "$NO_SUCH_API_KEY is not set"));
}

/* Everything that is written anywhere, searched for the key. */
static void a_planted_key_is_found_nowhere(void **state)
{
    char *out = path_join(scope, work, "stderr.txt"), *record = path_join(scope, work, "rec.jsonl");
    struct arena *a = arena_new();
    struct fault_server server;
    struct text t;
    struct error err = {0};
    int saved = dup(2), fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    json_t *d, *p;
    char *text;

    (void)state;
    server_start(&server, work, NULL, NULL);
    dup2(fd, 2);
    log_set_level(LOG_DEBUG);
    for (int i = 0; i < 5; i++) {
        static const char *const scenarios[] = {"leak", "leak-reply", "429-once", "redirect", "ok"};
        struct llm_config c = quick_config("openai:m", server_url(&server, scenarios[i], a));
        struct error e = {0};
        struct reply r;

        c.record_file = record;
        quick_ask(&c, a, &r, &e);
        fprintf(stderr, "%s %s %s\n", r.text.data ? r.text.data : "", e.text, e.hint);
        d = llm_describe(&c);
        text = json_dumps(d, 0);
        fprintf(stderr, "%s\n", text);
        free(text);
        json_decref(d);
    }
    p = llm_providers();
    text = json_dumps(p, 0);
    fprintf(stderr, "%s\n", text);
    free(text);
    json_decref(p);
    log_set_level(LOG_WARN);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    close(fd);
    assert_true(file_read(out, 1 << 20, a, &t, &err));
    assert_non_null(strstr(t.data, "OPENAI_API_KEY")); /* where it is from may be said */
    assert_non_null(strstr(t.data, "[key]"));
    assert_null(strstr(t.data, KEY));
    assert_true(file_read(record, 1 << 20, a, &t, &err));
    assert_non_null(strstr(t.data, "[key]"));
    assert_null(strstr(t.data, KEY));
    assert_true(server_log_count(&server, KEY) > 0); /* it did reach the server */
    server_stop(&server);
    arena_free(a);
}

/* ---- small parts ------------------------------------------------------------------------- */

static void retry_after_reads_seconds_and_dates(void **state)
{
    static const struct {
        const char *value;
        int ms;
    } rows[] = {
        {"0", 0},
        {"2", 2000},
        {"1.5", 1500},
        {" 7 ", 7000},
        {"-3", -1},
        {"soon", -1},
        {"1e99", -1},
        {"12 monkeys", -1},
        {"Thu, 01 Jan 1970 00:01:40 GMT", 90000},
        {"Thu, 01 Jan 1970 00:00:01 GMT", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (retry_after_ms(rows[i].value, 10000) != rows[i].ms)
            fail_msg("%s: %d", rows[i].value, retry_after_ms(rows[i].value, 10000));
}

static void pauses_double_up_to_their_limit_and_are_not_all_the_same(void **state)
{
    struct llm_config c = llm_config_default();
    struct fault f = {.retry_after_ms = -1};
    unsigned seed = 1;
    int first, differ = 0;

    (void)state;
    for (int n = 0; n < 12; n++) {
        int64_t full = (int64_t)c.backoff_ms << n;
        int ms = fault_pause_ms(&c, &f, n, &seed);

        if (full > c.backoff_max_ms)
            full = c.backoff_max_ms;
        assert_in_range(ms, full / 2, full);
    }
    first = fault_pause_ms(&c, &f, 3, &seed);
    for (int n = 0; n < 20; n++)
        differ += fault_pause_ms(&c, &f, 3, &seed) != first;
    assert_true(differ > 10);
}

static int setup(void **state)
{
    struct error err = {0};

    (void)state;
    scope = arena_new();
    setenv("OPENAI_API_KEY", KEY, 1);
    setenv("ANTHROPIC_API_KEY", KEY, 1);
    return dir_temp("llm", scope, &work, &err) ? 0 : -1;
}

static int teardown(void **state)
{
    struct error err = {0};

    (void)state;
    dir_remove(work, &err);
    arena_free(scope);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transcript_by_hand_is_played_by_stage_in_order),
        cmocka_unit_test(what_was_recorded_is_played_back_and_an_unknown_prompt_is_shown),
        cmocka_unit_test(a_recalled_answer_uses_up_its_entry),
        cmocka_unit_test(a_broken_transcript_is_refused_with_its_line),
        cmocka_unit_test(a_command_gets_the_prompt_and_no_key),
        cmocka_unit_test(a_command_that_fails_hangs_or_floods_is_an_error),
        cmocka_unit_test(a_command_ends_when_interrupted),
        cmocka_unit_test(an_unknown_model_is_wrong_use),
        cmocka_unit_test(a_price_is_the_models_own_or_unknown),
        cmocka_unit_test(budgets_on_two_machines_are_one),
        cmocka_unit_test(a_budget_ends_calls_tokens_money_and_minutes),
        cmocka_unit_test(a_grant_is_never_more_than_what_is_left),
        cmocka_unit_test(parallel_runs_share_one_budget_through_its_file),
        cmocka_unit_test(a_budget_file_is_whole_at_every_moment),
        cmocka_unit_test(what_was_spent_before_counts_and_a_pause_does_not),
        cmocka_unit_test(a_model_without_a_price_and_a_budget_in_dollars_do_not_go_together),
        cmocka_unit_test(a_spent_budget_stops_the_next_call),
        cmocka_unit_test(a_key_file_others_can_read_is_refused),
        cmocka_unit_test(a_key_variable_that_children_would_inherit_is_refused),
        cmocka_unit_test(a_missing_key_is_said_before_anything_is_sent),
        cmocka_unit_test(a_planted_key_is_found_nowhere),
        cmocka_unit_test(retry_after_reads_seconds_and_dates),
        cmocka_unit_test(pauses_double_up_to_their_limit_and_are_not_all_the_same),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
