/* support.c - starts fault_server.py and talks to it through the llm room. */
#include "support.h"

#include "base/clock.h"
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
    fprintf(stderr, "support: %s: %s\n", what, strerror(errno));
    exit(99);
}

void server_start(struct fault_server *s, const char *dir, const char *cert, const char *key)
{
    const char *script = getenv("FAULT_SERVER");
    int in[2], out[2];
    char line[32] = "";

    snprintf(s->log, sizeof(s->log), "%s/requests-%s.log", dir, cert ? "tls" : "plain");
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        die("pipe");
    s->pid = fork();
    if (s->pid < 0)
        die("fork");
    if (s->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execlp("python3", "python3", script ? script : "tests/llm/fault_server.py", s->log, cert,
               key, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    s->in = in[1];
    for (size_t n = 0; n + 1 < sizeof(line) && !strchr(line, '\n');) {
        ssize_t got = read(out[0], line + n, sizeof(line) - 1 - n);

        if (got <= 0)
            die("the fault server did not start");
        n += (size_t)got;
    }
    close(out[0]);
    s->port = (int)strtol(line, NULL, 10);
}

void server_stop(struct fault_server *s)
{
    close(s->in);
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
}

const char *server_url(struct fault_server *s, const char *scenario, struct arena *a)
{
    static int id;

    return arena_printf(a, "http://127.0.0.1:%d/%s/%d", s->port, scenario, ++id);
}

int server_log_count(const struct fault_server *s, const char *what)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct text t = {"", 0};
    int n = 0;

    if (file_read(s->log, 256 << 20, a, &t, &err))
        for (const char *p = t.data; (p = strstr(p, what)) != NULL; p++)
            n++;
    arena_free(a);
    return n;
}

int server_log_wait(const struct fault_server *s, const char *what, int wanted)
{
    int64_t end = clock_ms() + PATIENCE_MS;
    int n;

    while ((n = server_log_count(s, what)) < wanted && clock_ms() < end)
        usleep(10000);
    return n;
}

struct llm_config quick_config(const char *model, const char *base_url)
{
    struct llm_config c = llm_config_default();

    c.model = model;
    c.base_url = base_url;
    c.connect_ms = c.stall_ms = PATIENCE_MS;
    c.total_ms = 2 * PATIENCE_MS;
    c.max_retries = 2;
    c.backoff_ms = 5;
    c.backoff_max_ms = 20;
    c.reply_limit_bytes = 1 << 20;
    c.max_output_tokens = 1000;
    return c;
}

struct request quick_request(enum stage_kind stage, const char *prompt, struct message *m)
{
    *m = (struct message){"user", text_of(prompt)};
    return (struct request){
        .stage = stage, .messages = m, .message_count = 1, .prompt_hash = "none"};
}

bool quick_ask(const struct llm_config *c, struct arena *a, struct reply *out, struct error *err)
{
    struct message m;
    struct request req = quick_request(STAGE_REPAIR, "Say hello.", &m);
    struct llm *llm = NULL;
    bool ok;

    memset(out, 0, sizeof(*out));
    if (!llm_open(c, &llm, err))
        return false;
    ok = llm_ask(llm, &req, a, out, err);
    llm_close(llm);
    return ok;
}
