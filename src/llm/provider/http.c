/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.c - one attempt over HTTP: send a JSON body, read a stream of events.
 *
 * Hides libcurl. One connection is kept and reused. The dialect defines what is sent and what
 * events mean; this file classifies every transport fault (table in docs/models.md).
 *
 * Invariants
 * 1. Redirects are not followed: a key is sent only to the configured host.
 * 2. Every wait has a limit: connect_ms, stall_ms without a byte, total_ms in all; and so has every
 *    reply: reply_limit_bytes.
 * 3. An answer counts only if the provider reported its end.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/vault.h"
#include "llm/provider/provider.h"
#include "llm/provider/sse.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { POLL_MS = 100, HEAD_BYTES = 16 * 1024, WIRE_FACTOR = 24 };

struct http {
    CURL *easy;
    CURLM *multi;
    const char *url;
};

/* One attempt while it runs. */
struct transfer {
    struct llm *llm;
    struct answer *answer;
    struct sse sse;
    struct buf head; /* the first bytes of a body that is not an event stream */
    size_t bytes;
    long status;
    bool is_events, is_json, started, too_big;
    int retry_after_ms;
    char location[256], type[96], bad[200];
    int64_t last_byte_ms;
};

/* ---- the address --------------------------------------------------------------- */

static const char *base_of(const struct llm_config *c, const struct dialect *d)
{
    const char *env = getenv(d->base_env);

    return c->base_url && *c->base_url ? c->base_url : env && *env ? env : d->base_url;
}

const char *llm_base_url(const struct llm *llm)
{
    return llm->provider->dialect ? base_of(&llm->config, llm->provider->dialect) : NULL;
}

/* Does the request go to the provider's own host over TLS? */
bool http_is_official(const struct llm_config *c, const struct dialect *d)
{
    const char *base = base_of(c, d);
    size_t host = strcspn(d->base_url + 8, "/") + 8; /* "https://" is 8 */

    return strncasecmp(base, d->base_url, host) == 0 && (base[host] == '/' || base[host] == 0);
}

const char *http_url(const struct llm_config *c, const struct dialect *d, struct arena *a)
{
    char *base = arena_strdup(a, base_of(c, d)), *host;
    size_t n = strlen(base);
    bool bare;

    while (n && base[n - 1] == '/')
        base[--n] = 0;
    host = strstr(base, "://");
    bare = !strchr(host ? host + 3 : base, '/'); /* "http://host:8000" means its /v1 */
    if (bare)
        return arena_printf(a, "%s/v1%s", base, d->path);
    return arena_printf(a, "%s%s", base, d->path);
}

/* ---- open, close ------------------------------------------------------------- */

/* Is it a name or address that only this machine can have: localhost, 127.x.y.z or
 * [::1]? */
static bool is_local(const char *host)
{
    size_t len = strcspn(host, "/:?#");
    char name[64];
    struct in_addr v4;

    if (strncmp(host, "[::1]", 5) == 0)
        return strchr("/:?#", host[5]) != NULL; /* '\0' counts, too */
    if (len >= sizeof(name))
        return false;
    snprintf(name, sizeof(name), "%.*s", (int)len, host);
    return strcasecmp(name, "localhost") == 0 ||
           (inet_pton(AF_INET, name, &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127);
}

static bool check_url(const struct llm *llm, const char *url, struct error *err)
{
    const char *host = strstr(url, "://"), *slash, *at;

    if (!host || (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)) {
        error_set(err, ERROR_USE, "the base URL %s is neither http:// nor https://", url);
        return error_hint(err, "for a local server: http://localhost:8000/v1");
    }
    slash = strchr(host + 3, '/');
    at = strchr(host + 3, '@');
    if (at && (!slash || at < slash))
        return error_set(err, ERROR_USE,
                         "the base URL holds a user name or password; give the key by environment "
                         "or file");
    if (llm->key.value && strncasecmp(url, "http://", 7) == 0 && !is_local(host + 3))
        log_warn("the key goes unencrypted to %s", url);
    return true;
}

/* The only copy of the key outside the vault: made for one attempt, wiped after it. */
static struct curl_slist *make_headers(const struct llm *llm)
{
    struct buf b = buf_init(HEAD_BYTES);
    struct curl_slist *list = NULL;
    char *line = NULL, *nl;

    buf_puts(&b, "Content-Type: application/json\nAccept: text/event-stream, application/json\n"
                 "Expect:\n");
    llm->provider->dialect->headers(llm->key.value ? llm->key.value : "", &b);
    for (line = b.data; line && *line; line = nl + 1) {
        nl = strchr(line, '\n');
        if (!nl)
            break;
        *nl = 0;
        list = curl_slist_append(list, line);
    }
    explicit_bzero(b.data, b.len);
    buf_release(&b);
    return list;
}

static void wipe_headers(struct curl_slist *list)
{
    for (struct curl_slist *s = list; s; s = s->next)
        explicit_bzero(s->data, strlen(s->data));
    curl_slist_free_all(list);
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx);
static size_t on_header(char *data, size_t size, size_t n, void *ctx);

bool http_open(struct llm *llm, struct error *err)
{
    const struct llm_config *c = &llm->config;
    struct http *h;

    if (!secret_load(c, llm->provider->dialect, &llm->key, err))
        return false;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return error_set(err, ERROR_MACHINE, "libcurl does not start");
    h = xmalloc(sizeof(*h));
    llm->state = h;
    h->url = http_url(c, llm->provider->dialect, llm->arena);
    h->easy = curl_easy_init();
    h->multi = curl_multi_init();
    if (!h->easy || !h->multi)
        return error_set(err, ERROR_MACHINE, "libcurl gives no handle");
    if (!check_url(llm, h->url, err))
        return false;
    curl_easy_setopt(h->easy, CURLOPT_URL, h->url);
    curl_easy_setopt(h->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h->easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(h->easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(h->easy, CURLOPT_USERAGENT, "cutegen/" CUTEGEN_VERSION);
    curl_easy_setopt(h->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)c->connect_ms);
    curl_easy_setopt(h->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(h->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h->easy, CURLOPT_HEADERFUNCTION, on_header);
    if (c->ca_file)
        curl_easy_setopt(h->easy, CURLOPT_CAINFO, c->ca_file);
    if (c->proxy)
        curl_easy_setopt(h->easy, CURLOPT_PROXY, c->proxy);
    return true;
}

void http_close(struct llm *llm)
{
    struct http *h = llm->state;

    if (!h)
        return;
    if (h->easy)
        curl_easy_cleanup(h->easy);
    if (h->multi)
        curl_multi_cleanup(h->multi);
    xfree(h);
    llm->state = NULL;
    curl_global_cleanup();
}

/* ---- the response ----------------------------------------------------------- */

static void header_value(struct text line, const char *name, char *out, size_t cap)
{
    size_t n = strlen(name), len;

    if (line.len <= n || strncasecmp(line.data, name, n) != 0 || line.data[n] != ':')
        return;
    line.data += n + 1, line.len -= n + 1;
    while (line.len && (*line.data == ' ' || *line.data == '\t'))
        line.data++, line.len--;
    while (line.len && (line.data[line.len - 1] == '\r' || line.data[line.len - 1] == '\n'))
        line.len--;
    len = line.len < cap - 1 ? line.len : cap - 1;
    memcpy(out, line.data, len);
    out[len] = 0;
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    struct text line = {data, size * n};
    char wait[64] = "";

    t->last_byte_ms = clock_ms();
    if (text_starts(line, "HTTP/")) { /* also after a 100 Continue */
        t->type[0] = t->location[0] = 0;
        t->retry_after_ms = -1;
    }
    header_value(line, "content-type", t->type, sizeof(t->type));
    header_value(line, "location", t->location, sizeof(t->location));
    header_value(line, "retry-after", wait, sizeof(wait));
    if (wait[0])
        t->retry_after_ms = retry_after_ms(wait, clock_unix_ms());
    return size * n;
}

static void on_event(void *ctx, const char *event, struct text data)
{
    struct transfer *t = ctx;
    json_error_t why;
    json_t *v;
    size_t before = t->answer->text.len;

    (void)event; /* every dialect repeats it inside the data */
    if (data.len >= 6 && memcmp(data.data, "[DONE]", 6) == 0) {
        t->answer->finished = true;
        return;
    }
    v = json_loadb(data.data, data.len, 0, &why);
    if (!v) {
        if (!t->bad[0])
            snprintf(t->bad, sizeof(t->bad), "an event is not JSON (%s): %.*s", why.text,
                     (int)(data.len < 60 ? data.len : 60), data.data);
        return;
    }
    t->llm->provider->dialect->event(t->answer, v);
    json_decref(v);
    if (t->answer->text.len > before && t->llm->config.on_text)
        t->llm->config.on_text(t->llm->config.on_text_ctx, t->answer->text.data + before,
                               t->answer->text.len - before);
}

/* Detects the kind of body by its first bytes, since servers differ in Content-Type. */
static void begin_body(struct transfer *t)
{
    struct http *h = t->llm->state;

    t->started = true;
    curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &t->status);
    t->is_events = t->status == 200 && strncasecmp(t->type, "text/event-stream", 17) == 0;
    t->is_json = strncasecmp(t->type, "application/json", 16) == 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    size_t len = size * n, limit = t->llm->config.reply_limit_bytes;

    t->last_byte_ms = clock_ms();
    if (!t->started)
        begin_body(t);
    t->bytes += len;
    if (t->is_events) {
        if (!sse_feed(&t->sse, data, len))
            t->too_big = true;
    } else {
        buf_add(&t->head, data, len);
        t->too_big |= t->head.overflowed && t->status == 200;
    }
    /* Framing makes a stream several times larger than its text, but not unboundedly. */
    t->too_big |= t->answer->text.overflowed || t->bytes > limit * WIRE_FACTOR;
    return t->too_big ? 0 : len;
}

/* ---- faults ----------------------------------------------------------------------- */

static void host_of(const char *url, char *out, size_t cap)
{
    const char *p = strstr(url, "://");
    size_t n;

    p = p ? p + 3 : url;
    n = strcspn(p, "/?");
    snprintf(out, cap, "%.*s", (int)n, p);
}

static bool curl_fault(const struct transfer *t, CURLcode code, const char *detail, struct fault *f)
{
    const struct http *h = t->llm->state;
    char host[128];

    host_of(h->url, host, sizeof(host));
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        fault_set(f, true, "the name of %s cannot be resolved: %s", host, detail);
        return fault_hint(f, "check the spelling of the base URL and the network");
    case CURLE_COULDNT_CONNECT:
        fault_set(f, true, "no connection to %s: %s", host, detail);
        return fault_hint(f, "check that the server is running and that the base URL is right");
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
        fault_set(f, false, "TLS with %s failed: %s", host, detail);
        return fault_hint(f, "for a server with its own certificate authority, name its file "
                             "(ca_file); for one without TLS, use http://");
    case CURLE_OPERATION_TIMEDOUT:
        return fault_set(f, true, "no connection to %s within %d ms", host,
                         t->llm->config.connect_ms);
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return fault_set(f, true, "%s ended the connection in the middle: %s", host, detail);
    default:
        return fault_set(f, true, "talking to %s failed: %s", host, detail);
    }
}

static void copy_string(char *out, size_t cap, const json_t *v)
{
    snprintf(out, cap, "%s", json_is_string(v) ? json_string_value(v) : "");
}

/* Reads the provider's error message, whatever its dialect. */
static void read_refusal(const struct buf *body, struct refusal *out)
{
    json_t *v = body->len ? json_loadb(body->data, body->len, 0, NULL) : NULL;
    const json_t *e = json_object_get(v, "error");
    const char *s = json_string_value(json_object_get(e, "message"));

    if (!s)
        s = json_string_value(e);
    if (!s)
        s = json_string_value(json_object_get(v, "message"));
    if (!s)
        s = json_string_value(json_object_get(v, "detail"));
    if (s)
        snprintf(out->words, sizeof(out->words), "%s", s);
    else
        snprintf(out->words, sizeof(out->words), "%.*s", (int)(body->len < 200 ? body->len : 200),
                 body->data ? body->data : "");
    copy_string(out->param, sizeof(out->param), json_object_get(e, "param"));
    copy_string(out->code, sizeof(out->code), json_object_get(e, "code"));
    json_decref(v);
}

static bool status_fault(struct transfer *t, struct wire *w, struct fault *f)
{
    struct http *h = t->llm->state;
    struct refusal r = {0};
    const char *words = r.words;
    char host[128];

    read_refusal(&t->head, &r);
    host_of(h->url, host, sizeof(host));
    f->retry_after_ms = t->retry_after_ms;
    if (t->status >= 300 && t->status < 400) {
        fault_set(f, false, "%s redirects to %s (status %ld); the key is not sent there", h->url,
                  t->location, t->status);
        return fault_hint(f, "if that is right, make it the base URL");
    }
    if (t->status == 429 && strstr(words, "quota")) {
        fault_set(f, false, "%s: %s (status 429)", host, words);
        return fault_hint(f, "the account has no money or quota left: waiting does not help");
    }
    if (t->status == 429 || t->status == 408 || t->status == 425 || t->status >= 500)
        return fault_set(f, true, "%s answers with status %ld: %s", host, t->status, words);
    fault_set(f, false, "%s refuses the request (status %ld): %s", host, t->status, words);
    if ((t->status == 400 || t->status == 422) && adapt_request(t->llm, w, &r, f))
        return false;
    if (t->status == 401 || t->status == 403)
        return fault_hint(f, "the key (from %s) is not accepted", t->llm->key.from);
    if (t->status == 404)
        return fault_hint(f, "check the model's name and the base URL %s", h->url);
    return false;
}

/* The transfer ended with status 200: checks that it contains an answer. */
static bool check_answer(struct transfer *t, struct fault *f)
{
    struct answer *a = t->answer;
    json_t *v;

    if (!t->is_events) {
        v = t->head.len ? json_loadb(t->head.data, t->head.len, 0, NULL) : NULL;
        if (!v || !json_is_object(v)) {
            json_decref(v);
            fault_set(f, true, "the answer is %s, not JSON: %.*s",
                      t->head.len == 0          ? "empty"
                      : strstr(t->type, "html") ? "a web page"
                                                : "something else",
                      (int)(t->head.len < 120 ? t->head.len : 120),
                      t->head.data ? t->head.data : "");
            return fault_hint(f,
                              "check that the base URL is that of an API (it often ends in /v1)");
        }
        t->llm->provider->dialect->whole(a, v);
        json_decref(v);
        if (a->text.len && t->llm->config.on_text)
            t->llm->config.on_text(t->llm->config.on_text_ctx, a->text.data, a->text.len);
    }
    if (a->problem[0])
        return fault_set(f, a->problem_passes, "the provider reports: %s", a->problem);
    if (t->bad[0])
        return fault_set(f, true, "the stream is malformed: %s", t->bad);
    if (!a->finished)
        return fault_set(f, true, "the stream ends in the middle: %zu bytes of text and no end",
                         a->text.len);
    return true;
}

/* ---- one attempt --------------------------------------------------------------------- */

/* Runs the transfer to its end; *stopped says why we aborted it. */
static CURLcode transfer_run(struct transfer *t, struct http *h, const struct wire *w,
                             struct fault *f, bool *stopped)
{
    const struct llm_config *c = &t->llm->config;
    int64_t begin = clock_ms();
    int running = 1, left;
    CURLMsg *msg;

    t->last_byte_ms = begin;
    curl_multi_add_handle(h->multi, h->easy);
    while (!*stopped) {
        curl_multi_perform(h->multi, &running);
        if (!running)
            break;
        curl_multi_poll(h->multi, NULL, 0, POLL_MS, NULL);
        if (c->interrupted && c->interrupted(c->interrupted_ctx)) {
            fault_set(f, false, "interrupted");
            f->kind = ERROR_INTERRUPTED;
            *stopped = true;
        } else if (clock_ms() - begin > w->total_ms) {
            fault_set(f, false, "the reply was not complete within %d s",
                      (w->total_ms + 999) / 1000);
            fault_hint(f, "raise the deadline of a call, or ask a faster model");
            *stopped = true;
        } else if (clock_ms() - t->last_byte_ms > c->stall_ms) {
            fault_set(f, true, "the server sent nothing for %d ms", c->stall_ms);
            *stopped = true;
        }
    }
    msg = curl_multi_info_read(h->multi, &left);
    curl_multi_remove_handle(h->multi, h->easy);
    return msg && msg->msg == CURLMSG_DONE ? msg->data.result : CURLE_OK;
}

static bool transfer_judge(struct transfer *t, struct http *h, struct wire *w, CURLcode code,
                           const char *detail, struct fault *f)
{
    if (t->too_big) {
        fault_set(f, false, "the reply is larger than %zu bytes and was not read further",
                  t->llm->config.reply_limit_bytes);
        return false;
    }
    if (!t->started)
        curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &t->status);
    if (code != CURLE_OK && !(t->status == 200 && t->answer->finished))
        return curl_fault(t, code, detail[0] ? detail : curl_easy_strerror(code), f);
    if (t->status != 200)
        return status_fault(t, w, f);
    return check_answer(t, f);
}

bool http_attempt(struct llm *llm, struct wire *w, struct answer *out, struct fault *f)
{
    struct http *h = llm->state;
    struct transfer t = {.llm = llm, .answer = out, .retry_after_ms = -1};
    json_t *body = llm->provider->dialect->body(w);
    char *text = json_dumps(body, JSON_COMPACT);
    struct curl_slist *headers = make_headers(llm);
    char detail[CURL_ERROR_SIZE] = "";
    bool ok = false, stopped = false;
    CURLcode code;

    json_decref(body);
    if (!text)
        BUG("a request that cannot be written as JSON");
    t.sse = sse_init(llm->config.reply_limit_bytes, on_event, &t);
    t.head = buf_init(llm->config.reply_limit_bytes);
    /* last safeguard, because prompts quote program output */
    vault_scrub_in_place(text, strlen(text));
    curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h->easy, CURLOPT_POSTFIELDS, text);
    curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(text));
    curl_easy_setopt(h->easy, CURLOPT_WRITEDATA, &t);
    curl_easy_setopt(h->easy, CURLOPT_HEADERDATA, &t);
    curl_easy_setopt(h->easy, CURLOPT_ERRORBUFFER, detail);
    code = transfer_run(&t, h, w, f, &stopped);
    if (!stopped)
        ok = transfer_judge(&t, h, w, code, detail, f);
    curl_easy_setopt(h->easy, CURLOPT_POSTFIELDS, NULL);
    curl_easy_setopt(h->easy, CURLOPT_ERRORBUFFER, NULL);
    curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, NULL);
    wipe_headers(headers);
    vault_scrub_in_place(f->text, strlen(f->text));
    vault_scrub_in_place(f->hint, strlen(f->hint));
    sse_release(&t.sse);
    buf_release(&t.head);
    free(text);
    return ok;
}
