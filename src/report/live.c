/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.c - running runs and suites: the pieces of the live page.
 *
 * The page is a shell with a script; the script asks for a piece once a second
 * and replaces it when it has changed. Pieces are made by the report's code, so the live page shows
 * what the report will show.
 */
#include "base/clock.h"
#include "report/escape.h"
#include "report/page.h"
#include "report/rows.h"

#include <string.h>

static const char live_style[] =
    ".bar2{height:4px;background:var(--line);border-radius:2px;overflow:hidden;margin:10px 0 6px}"
    ".bar2>span{display:block;height:100%;background:var(--accent);transition:width .4s}"
    ".state{display:inline-flex;align-items:center;gap:7px;white-space:nowrap}"
    ".state::before{content:'';width:7px;height:7px;border-radius:50%;background:var(--dim)}"
    ".state.running::before{background:var(--accent);animation:beat 1.6s ease-in-out infinite}"
    ".state.done::before{background:var(--newink)}.state.failed::before,.state.killed::before{"
    "background:var(--bad)}@keyframes beat{50%{opacity:.25}}"
    "@media(prefers-reduced-motion:reduce){.state.running::before{animation:none}}"
    "#line{position:sticky;top:0;z-index:2;background:var(--paper);border-bottom:1px solid "
    "var(--line)}#line>div{max-width:1088px;margin:0 auto;padding:9px 24px;display:flex;gap:16px;"
    "justify-content:space-between;font-size:13px;color:var(--dim)}#line a{text-decoration:none}"
    "#live header{padding-top:26px}.suite-card{padding:6px 0 "
    "4px}main>.suite-card{padding-top:18px}.suite-card h3{margin:18px 0 2px;"
    "font-size:16px}.suite-card p{margin:0;color:var(--dim);font-size:13px}"
    ".sums td a,.sums th a,.suite-card h3 a{text-decoration:none}"
    ".runs th:nth-child(1){width:22%}.runs th:nth-child(2){width:13%}.runs th:nth-child(3),"
    ".runs th:nth-child(4){width:12%}.runs th:nth-child(n+5){width:8%}.runs th:nth-child(9){"
    "width:auto}"
    ".sums td a:hover,.sums th a:hover,.suite-card h3 a:hover{text-decoration:underline}"
    "@media(max-width:640px){main,header,footer{padding:0 16px}#line>div{padding:9px 16px}"
    "#live .wide{display:none}.runs th:nth-child(1){width:34%}.runs th:nth-child(2){width:22%}"
    "#live .runs td{white-space:nowrap}#live .runs th{overflow-wrap:anywhere}"
    "#live .sums th,#live .sums td{padding-left:12px}"
    "#live .sums th:first-child,#live .sums td:first-child{padding-left:0}"
    ".lead{font-size:18px}.hero{padding:20px 0}#live .hero .big{font-size:52px}"
    ".crumbs{flex-wrap:wrap;gap:2px 16px}.crumbs span{overflow-wrap:anywhere}}";

static const char live_script[] =
    "(function(){var t=location.hash.slice(1);"
    "if(t&&t[0]!='/'){sessionStorage.setItem('cutegen-token',t);"
    "history.replaceState(null,'','/#/')}else t=sessionStorage.getItem('cutegen-token')||'';"
    "var box=document.getElementById('live'),say=document.getElementById('say'),tag='',at='',timer;"
    "function state(c,w){say.className='state '+c;say.textContent=w}"
    "function opened(){return [].map.call(box.querySelectorAll('details[open]'),function(d){"
    "return d.id}).filter(Boolean)}"
    "function put(h){var o=opened();box.innerHTML=h;o.forEach(function(i){"
    "var d=document.getElementById(i);if(d)d.open=true})}"
    "function ask(){clearTimeout(timer);var p=location.hash.slice(1);if(p[0]!='/')p='/';"
    "var m=p.match(/^\\/(run|suite)\\/[^/]+$/);if(!m)p='/';if(p!=at){at=p;tag='';scrollTo(0,0)}"
    "var h={Authorization:'Bearer '+t};if(tag)h['If-None-Match']=tag;"
    "fetch('/view'+(p=='/'?'':p),{headers:h,cache:'no-store'}).then(function(r){"
    "if(r.status==304)return null;if(r.status==401)throw 'the token is wrong: open the address "
    "that cutegen live printed';if(r.status==404)throw 'there is no such page';"
    "if(!r.ok)throw 'the server answered '+r.status;tag=r.headers.get('ETag')||'';return r.text()})"
    ".then(function(x){if(x!==null&&p==at)put(x);state('running','live')})"
    ".catch(function(e){state('failed',typeof e=='string'?e:'cutegen live has ended')})"
    ".then(function(){timer=setTimeout(ask,1000)})}"
    "addEventListener('hashchange',ask);ask()})();";

void report_live_shell(const char *nonce, struct buf *b)
{
    buf_printf(b,
               "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
               "name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>cutegen "
               "live</title><style>%s%s</style></head><body><div id=\"line\"><div><a "
               "href=\"#/\">cutegen live</a><span id=\"say\" class=\"state\" role=\"status\">"
               "connecting</span></div></div><div id=\"live\"></div><noscript><main><p>This page "
               "needs its script. <code>cutegen runs</code> and <code>cutegen report RUN</code> "
               "show the same without one.</p></main></noscript>\n<script nonce=\"%s\">%s</script>"
               "</body></html>\n",
               page_style, live_style, nonce, live_script);
}

/* ---- overview ------------------------------------------------------------------ */

static void put_state(struct buf *b, const struct run_info *r)
{
    buf_printf(b, "<span class=\"state %s\">%s</span>", state_text(r), state_text(r));
}

static void put_link(struct buf *b, const char *kind, const char *id, const char *text)
{
    buf_printf(b, "<a href=\"#/%s/", kind);
    html_puts(b, id);
    buf_puts(b, "\">");
    html_puts(b, text);
    buf_puts(b, "</a>");
}

static void put_run(struct buf *b, const struct run_info *r, struct arena *a)
{
    int64_t end = r->ended_ms ? r->ended_ms : clock_unix_ms();
    double over = r->eager_us > 0 && !r->modelled ? r->eager_us : r->first_us;

    buf_puts(b, "<tr><th scope=\"row\" class=\"l0\">");
    put_link(b, "run", r->id, r->task);
    buf_puts(b, "</th><td class=\"l0\">");
    put_state(b, r);
    buf_puts(b, "</td><td>");
    if (r->best_us > 0)
        buf_printf(b, "%s%s", us_text(r->best_us, MICRO, a), modelled_mark(r->modelled));
    buf_puts(b, "</td><td>");
    if (r->best_us > 0 && over > 0)
        buf_printf(b, "<strong>%.2f" TIMES "</strong>%s", over / r->best_us,
                   modelled_mark(r->modelled));
    buf_printf(b, "</td><td class=\"wide\">%d</td><td class=\"wide\">%d</td><td class=\"wide\">",
               r->attempts, r->calls);
    if (r->cost_usd > 0)
        buf_puts(b, money_text(r->cost_usd, a));
    buf_printf(b, "</td><td class=\"wide\">%s</td><td class=\"l0 wide\">",
               ms_text((end - r->started_ms) / 1000 * 1000, a));
    html_puts(b, r->model);
    buf_puts(b, "</td></tr>");
}

static void put_runs(struct buf *b, const char *title, const struct run_info *runs, size_t count,
                     bool alive, struct arena *a)
{
    enum { MOST = 40 };
    size_t shown = 0;

    for (size_t i = 0; i < count; i++)
        shown += runs[i].alive == alive;
    if (!shown)
        return;
    buf_printf(b,
               "<section><h2>%s</h2><div class=\"scroll\"><table class=\"sums "
               "runs\"><thead><tr><th class=\"l0\">task</th><th "
               "class=\"l0\">state</th><th>best</th><th>speed-up</th><th "
               "class=\"wide\">attempts</th><th class=\"wide\">calls</th><th class=\"wide\">cost"
               "</th><th class=\"wide\">took</th><th class=\"l0 wide\">model</th></tr></thead>"
               "<tbody>",
               title);
    shown = 0;
    for (size_t i = 0; i < count && shown < MOST; i++)
        if (runs[i].alive == alive) {
            put_run(b, &runs[i], a);
            shown++;
        }
    buf_puts(b, "</tbody></table></div></section>");
}

static void put_card(struct buf *b, const struct live_suite *s, bool named)
{
    size_t part = s->count ? 100 * s->ended / s->count : 0;

    buf_puts(b, "<div class=\"suite-card\">");
    if (named) {
        buf_puts(b, "<h3>");
        put_link(b, "suite", s->name, s->name);
        buf_puts(b, "</h3>");
    }
    buf_printf(b, "<div class=\"bar2\"><span style=\"width:%zu%%\"></span></div>", part);
    buf_printf(b, "<p>%zu of %zu tasks done, %zu running</p></div>", s->ended, s->count,
               s->running);
}

/* Prints nothing if no suite was ever run by workers. */
static void put_queue(struct buf *b, const struct live_queue *q)
{
    if (!q->waiting && !q->leased && !q->done && !q->failed && !q->workers)
        return;
    buf_printf(b,
               "<section><h2>Queue</h2><p><strong>%lld</strong> waiting, <strong>%lld</strong> "
               "under way, %lld done, %lld failed. In the last hour %lld done, %lld failed. "
               "%zu worker%s, %zu of them busy.</p></section>",
               (long long)q->waiting, (long long)q->leased, (long long)q->done,
               (long long)q->failed, (long long)q->done_hour, (long long)q->failed_hour, q->workers,
               q->workers == 1 ? "" : "s", q->busy);
}

void report_live_overview(const struct live_queue *queue, const struct run_info *runs, size_t count,
                          const struct live_suite *suites, size_t suite_count, struct buf *b)
{
    struct arena *a = arena_new();
    size_t running = 0;
    bool modelled = false, unvalidated = false;

    for (size_t i = 0; i < count; i++)
        running += runs[i].alive;
    buf_puts(b, "<header><p class=\"lead\">");
    if (!count)
        buf_puts(b, "No runs yet. They appear here as soon as one begins.");
    else
        buf_printf(b, "<strong>%zu running</strong>, %lld run%s in the store.", running,
                   (long long)queue->runs, queue->runs == 1 ? "" : "s");
    buf_puts(b, "</p></header><main>");
    put_queue(b, queue);
    if (suite_count)
        buf_puts(b, "<section><h2>Suites</h2>");
    for (size_t i = 0; i < suite_count; i++)
        put_card(b, &suites[i], true);
    if (suite_count)
        buf_puts(b, "</section>");
    put_runs(b, "Running", runs, count, true, a);
    put_runs(b, "Before", runs, count, false, a);
    for (size_t i = 0; i < count; i++) {
        modelled = modelled || runs[i].modelled;
        unvalidated = unvalidated || (runs[i].modelled && runs[i].unvalidated);
    }
    if (modelled)
        buf_printf(b,
                   "<p class=\"note\"><span class=\"mod\">*</span> modelled%s, not measured.</p>",
                   unvalidated ? ", unvalidated for all but the H200" : "");
    buf_puts(b, "</main>");
    arena_free(a);
}

/* ---- one run, one suite ------------------------------------------------------------ */

void report_live_run(const struct run_history *h, struct buf *b)
{
    struct arena *a = arena_new();
    struct facts f = facts_of(h);

    run_page(b, &f, 1, a);
    arena_free(a);
}

static void put_task_now(struct buf *b, const struct suite_task *t, const struct run_history *h,
                         struct arena *a)
{
    struct facts f;

    buf_puts(b, "<tr><th scope=\"row\" class=\"l0\">");
    if (!t->run) {
        html_puts(b, t->name);
        buf_puts(b, "</th><td class=\"l0\"><span class=\"state\">waiting</span></td><td "
                    "class=\"wide\"></td><td></td><td></td></tr>");
        return;
    }
    f = facts_of(h);
    put_link(b, "run", t->run, t->name);
    buf_puts(b, "</th><td class=\"l0\">");
    put_state(b, &h->info);
    buf_printf(b, "</td><td class=\"wide\">%zu attempt%s</td><td>", h->attempt_count,
               h->attempt_count == 1 ? "" : "s");
    if (f.best_us > 0)
        buf_printf(b, "%s%s", us_text(f.best_us, MICRO, a), modelled_mark(f.modelled));
    buf_printf(b, "</td><td>%s</td></tr>", ms_text(f.wall_ms, a));
}

/* What each running task is doing, above the results. */
static void put_now(struct buf *b, const struct suite_view *v, struct arena *a)
{
    struct live_suite card = {.name = v->suite->name, .count = v->suite->count};

    for (size_t i = 0; i < v->suite->count; i++) {
        card.ended += v->suite->tasks[i].ended;
        card.running += v->suite->tasks[i].run && v->histories[i].info.alive;
    }
    if (card.ended == card.count)
        return;
    buf_puts(b, "<main>");
    put_card(b, &card, false);
    buf_puts(b, "<div class=\"scroll\"><table class=\"sums\"><tbody>");
    for (size_t i = 0; i < v->suite->count; i++)
        if (!v->suite->tasks[i].ended)
            put_task_now(b, &v->suite->tasks[i], &v->histories[i], a);
    buf_puts(b, "</tbody></table></div></main>");
}

void report_live_suite(const struct suite_view *v, struct buf *b)
{
    struct arena *a = arena_new();
    struct suite_rows rows = suite_rows_of(v, a);

    put_now(b, v, a);
    suite_page(b, &rows, a);
    arena_free(a);
}
