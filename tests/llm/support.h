/* support.h - a fault server for the length of a test program, and short ways to ask. */
#ifndef TESTS_LLM_SUPPORT_H
#define TESTS_LLM_SUPPORT_H

#include "llm/llm.h"

/* For what must happen: reached only when something is broken. */
enum { PATIENCE_MS = 1200000 };

struct fault_server {
    int port, pid, in; /* closing `in` ends it */
    char log[256];
};

/* cert, key: PEM files for TLS, or NULL. Fails the test program when it cannot start. */
void server_start(struct fault_server *s, const char *dir, const char *cert, const char *key);
void server_stop(struct fault_server *s);
/* http://127.0.0.1:PORT/SCENARIO/ID, a new ID each time; in the arena. */
const char *server_url(struct fault_server *s, const char *scenario, struct arena *a);
/* How often `what` stands in the log. */
int server_log_count(const struct fault_server *s, const char *what);
/* The same, once it stands there `wanted` times: a client may hang up before its request is read.
 */
int server_log_wait(const struct fault_server *s, const char *what, int wanted);

/* Defaults with short pauses between attempts. */
struct llm_config quick_config(const char *model, const char *base_url);
/* Opens, asks one small question, closes. */
bool quick_ask(const struct llm_config *c, struct arena *a, struct reply *out, struct error *err);
/* One user message at this stage. */
struct request quick_request(enum stage_kind stage, const char *prompt, struct message *m);

#endif
