/* SPDX-License-Identifier: Apache-2.0 */
/* copier.c - what is said between a lender and a copier; see copier.h. */
#include "base/copier.h"

#include "base/json.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PACKET_BYTES = 160 << 10, MAX_WORDS = 2048 };

static json_t *list_of(const char *const *words)
{
    json_t *list = json_array();

    for (size_t i = 0; words[i]; i++)
        json_array_append_new(list, json_string(words[i])); /* what is not UTF-8 is left out */
    return list;
}

static bool can_be_copied(const struct proc_spec *s)
{
    return !s->keep_fd_count && !s->merge_stderr && !s->deadline_ms && !s->watch_dir &&
           !s->cpu_limit_s && !s->file_limit_bytes;
}

bool copier_send(int fd, const struct supervise_plan *plan, struct error *err)
{
    const struct proc_spec *s = plan->spec;
    const int fds[COPIER_FDS] = {plan->in, plan->out, plan->err, plan->life, plan->report};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof fds)];
    } control = {0};
    struct arena *a = arena_new();
    struct iovec part;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    json_t *r = json_pack(
        "{s:o, s:o, s:s, s:I, s:I, s:I}", "argv", list_of(s->argv), "env",
        list_of((const char *const *)plan->environment), "dir", s->dir ? s->dir : "/",
        "address_limit", (json_int_t)s->address_limit_bytes, "resident_limit",
        (json_int_t)s->resident_limit_bytes, "disk_limit", (json_int_t)s->disk_limit_bytes);
    struct text line;
    bool ok = can_be_copied(s);

    if (plan->tmp)
        json_object_set_new(r, "tmp", json_string(plan->tmp));
    if (s->cage)
        json_object_set_new(r, "confine", s->cage->json(s->cage->policy));
    line = text_of(json_line(r, a));
    part = (struct iovec){(void *)(uintptr_t)line.data, line.len};
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(head), fds, sizeof fds);
    if (!ok)
        error_set(err, ERROR_MACHINE, "%s cannot be made as a copy", s->argv[0]);
    else if (line.len > PACKET_BYTES || sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        ok = error_set(err, ERROR_MACHINE, "asking for a copy of %s: %s", s->argv[0],
                       line.len > PACKET_BYTES ? "too much to say" : strerror(errno));
    json_decref(r);
    arena_free(a);
    return ok;
}

static const char *const *words_of(const json_t *request, const char *key, struct arena *a)
{
    const json_t *list = json_object_get(request, key);
    size_t n = json_array_size(list);
    const char **words;

    if (n > MAX_WORDS)
        return NULL;
    words = arena_array(a, n + 1, sizeof *words);
    for (size_t i = 0; i < n; i++)
        if (!(words[i] = json_string_value(json_array_get(list, i))))
            return NULL;
    return words;
}

static bool read_request(struct text line, const int fds[COPIER_FDS], struct arena *a,
                         json_t **request, struct proc_spec *spec, struct supervise_plan *plan)
{
    struct error ignored = {0};
    json_t *r;

    if (!json_parse(line, "a request for a copy", request, &ignored))
        return false;
    r = *request;
    *spec = (struct proc_spec){
        .argv = words_of(r, "argv", a),
        .env = words_of(r, "env", a),
        .clean_env = true,
        .dir = json_string_or(r, "dir", "/"),
        .address_limit_bytes = (uint64_t)json_int_or(r, "address_limit", 0),
        .resident_limit_bytes = (uint64_t)json_int_or(r, "resident_limit", 0),
        .disk_limit_bytes = (uint64_t)json_int_or(r, "disk_limit", 0),
    };
    *plan = (struct supervise_plan){.spec = spec,
                                    .tmp = json_string_or(r, "tmp", NULL),
                                    .in = fds[0],
                                    .out = fds[1],
                                    .err = fds[2],
                                    .life = fds[3],
                                    .report = fds[4]};
    return spec->argv && spec->argv[0] && spec->env;
}

bool copier_receive(int fd, struct arena *a, json_t **request, struct proc_spec *spec,
                    struct supervise_plan *plan, const json_t **confine)
{
    int fds[COPIER_FDS];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof fds)];
    } control;
    char *packet = arena_alloc(a, PACKET_BYTES + 1);
    struct iovec part = {packet, PACKET_BYTES};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *head;
    ssize_t n;

    *request = NULL;
    *confine = NULL;
    do
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
        return false;
    if (head->cmsg_len != CMSG_LEN(sizeof fds) || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return false; /* no lender of ours: the process ends, and its descriptors with it */
    memcpy(fds, CMSG_DATA(head), sizeof fds);
    packet[n] = '\0';
    if (!read_request((struct text){packet, (size_t)n}, fds, a, request, spec, plan))
        return false;
    *confine = json_object_get(*request, "confine");
    return true;
}
