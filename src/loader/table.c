/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - a judged case, read from words.
 *
 *     inputs, outputs: TENSOR each        dtype, bytes of an element, rank, sizes, strides
 *     workspaces                          bytes each
 *     maps                                buffer, offset, dtype, rank, dims, strides but the first,
 *                                         box, element strides, swizzle, l2, fill
 *     functions                           how many kernels
 *     steps                               0: buffer, offset, value, bytes
 *                                         1: function, grid, block, cluster, smem, overlap,
 *                                            arguments: 0 buffer offset, 1 place length, 2 map
 *
 * Each list begins with its count. Place and length select a piece of the blob. Every word is read
 * through word(), which checks its range; after the first bad word all others read as 0.
 */
#include "loader/loader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_STEPS = 4096, MAX_ARGUMENTS = 512, MAX_MAPS = 128, WORKSPACE_ALIGN = 256 };

struct word_reader {
    const int64_t *at, *end;
    const char *blob;
    size_t blob_bytes;
    struct loader_room *room;
    struct loader_case *c;
    bool bad;
};

/* ---- messages and memory ------------------------------------------------------------- */

static _Thread_local char said[512];

void loader_quiet(void)
{
    said[0] = '\0';
}

bool loader_tell(const char *format, ...)
{
    va_list args;

    if (said[0])
        return false;
    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    return false;
}

void loader_say(const char *text)
{
    snprintf(said, sizeof said, "%s", text ? text : "");
}

const char *loader_said(void)
{
    return said;
}

void *room_take(struct loader_room *room, size_t count, size_t each, size_t align)
{
    uintptr_t at = ((uintptr_t)room->at + align - 1) & ~(uintptr_t)(align - 1);
    uintptr_t end = (uintptr_t)room->end;
    size_t bytes;

    if (__builtin_mul_overflow(count, each, &bytes) || at > end || bytes > end - at) {
        loader_tell("the caller's memory is too small for this case");
        return NULL;
    }
    room->at = (unsigned char *)at + bytes;
    memset((void *)at, 0, bytes);
    return (void *)at;
}

/* ---- words --------------------------------------------------------------------------- */

static int64_t word(struct word_reader *r, int64_t least, int64_t most, const char *what)
{
    if (r->bad)
        return 0;
    if (r->at == r->end) {
        r->bad = true;
        loader_tell("the launch list ends before %s", what);
    } else if (*r->at < least || *r->at > most) {
        r->bad = true;
        loader_tell("the launch list has %s %lld, not %lld to %lld", what, (long long)*r->at,
                    (long long)least, (long long)most);
    }
    return r->bad ? 0 : *r->at++;
}

static void *piece(struct word_reader *r, int64_t count, size_t each)
{
    void *p = r->bad ? NULL : room_take(r->room, (size_t)count, each, 16);

    r->bad = r->bad || !p;
    return p;
}

/* Bytes from the first element to the end of the last; strides are not negative. */
static int64_t extent(struct word_reader *r, const struct loader_tensor *t, int64_t element)
{
    int64_t last = 0, bytes;

    for (int32_t d = 0; d < t->rank; d++) {
        int64_t step;

        if (t->sizes[d] == 0)
            return 0;
        if (__builtin_mul_overflow(t->sizes[d] - 1, t->strides[d], &step) ||
            __builtin_add_overflow(last, step, &last))
            r->bad = true;
    }
    if (r->bad || __builtin_mul_overflow(last + 1, element, &bytes)) {
        r->bad = true;
        loader_tell("a tensor of the launch list is larger than memory can be");
        return 0;
    }
    return bytes;
}

static void read_tensor(struct word_reader *r, struct loader_tensor *t)
{
    int64_t element;

    t->dtype = (int32_t)word(r, 0, 127, "a dtype");
    element = word(r, 1, 16, "an element size");
    t->rank = (int32_t)word(r, 0, LOADER_RANK, "a rank");
    for (int32_t d = 0; d < t->rank; d++)
        t->sizes[d] = word(r, 0, INT64_MAX / 2, "a size");
    for (int32_t d = 0; d < t->rank; d++)
        t->strides[d] = word(r, 0, INT64_MAX / 2, "a stride");
    t->bytes = r->bad ? 0 : extent(r, t, element);
}

static void read_tensors(struct word_reader *r)
{
    struct loader_case *c = r->c;
    int64_t count = c->input_count + c->output_count;

    c->tensors = piece(r, count, sizeof *c->tensors);
    for (int64_t i = 0; i < count && !r->bad; i++) {
        read_tensor(r, &c->tensors[i]);
        c->buffer_bytes[i] = c->tensors[i].bytes;
    }
}

static void read_workspaces(struct word_reader *r)
{
    struct loader_case *c = r->c;
    int32_t first = c->input_count + c->output_count;

    c->workspace_count = (int32_t)word(r, 0, LOADER_BUFFERS - first, "a count of workspaces");
    for (int32_t i = 0; i < c->workspace_count; i++) {
        int64_t bytes = word(r, 0, INT64_MAX / LOADER_BUFFERS / 2, "bytes of a workspace");

        c->workspace_at[i] = c->workspace_bytes;
        c->buffer_bytes[first + i] = bytes;
        c->workspace_bytes +=
            ((bytes ? bytes : 1) + WORKSPACE_ALIGN - 1) / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
    }
}

/* Reads a place in a buffer or directly after its end. */
static struct loader_source read_source(struct word_reader *r)
{
    const struct loader_case *c = r->c;
    struct loader_source s = {0};

    s.buffer =
        (int32_t)word(r, 0, c->input_count + c->output_count + c->workspace_count - 1, "a buffer");
    s.offset = word(r, 0, c->buffer_bytes[s.buffer], "an offset");
    return s;
}

/* ---- tensor maps --------------------------------------------------------------------- */

/* Checks that everything a map describes is inside its buffer. */
static void check_map(struct word_reader *r, const struct loader_map *m)
{
    static const unsigned char element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
    uint64_t reach = m->dims[0] * element_bytes[m->dtype], step;

    for (int32_t d = 1; d < m->rank; d++)
        if (__builtin_mul_overflow(m->dims[d] - 1, m->strides[d - 1], &step) ||
            __builtin_add_overflow(reach, step, &reach))
            r->bad = true;
    if (!r->bad && reach > (uint64_t)(r->c->buffer_bytes[m->at.buffer] - m->at.offset))
        r->bad = true;
    if (r->bad)
        loader_tell("a tensor map of the launch list leaves its buffer");
}

static void read_map(struct word_reader *r, struct loader_map *m)
{
    m->at = read_source(r);
    m->dtype = (int32_t)word(r, 0, 9, "a map's dtype");
    m->rank = (int32_t)word(r, 1, 5, "a map's rank");
    for (int32_t d = 0; d < m->rank; d++)
        m->dims[d] = (uint64_t)word(r, 1, (int64_t)1 << 32, "a map's size");
    for (int32_t d = 1; d < m->rank; d++)
        m->strides[d - 1] = (uint64_t)word(r, 0, (int64_t)1 << 40, "a map's stride");
    for (int32_t d = 0; d < m->rank; d++)
        m->box[d] = (uint32_t)word(r, 1, 256, "a map's box");
    for (int32_t d = 0; d < m->rank; d++)
        m->element_strides[d] = (uint32_t)word(r, 1, 8, "a map's element stride");
    m->swizzle = (int32_t)word(r, 0, 3, "a map's swizzle");
    m->l2 = (int32_t)word(r, 0, 3, "a map's l2");
    m->fill = (int32_t)word(r, 0, 1, "a map's fill");
    if (!r->bad)
        check_map(r, m);
}

static void read_maps(struct word_reader *r)
{
    r->c->map_count = (int32_t)word(r, 0, MAX_MAPS, "a count of maps");
    r->c->maps = piece(r, r->c->map_count, sizeof *r->c->maps);
    for (int32_t i = 0; i < r->c->map_count && !r->bad; i++)
        read_map(r, &r->c->maps[i]);
}

/* ---- steps --------------------------------------------------------------------------- */

static void read_bytes(struct word_reader *r, struct loader_argument *a)
{
    int64_t place = word(r, 0, (int64_t)r->blob_bytes, "a place of bytes");
    int64_t length = word(r, 1, (int64_t)r->blob_bytes - place, "a length of bytes");
    void *copy = piece(r, length, 1);

    if (copy)
        memcpy(copy, r->blob + place, (size_t)length);
    a->bytes = copy;
}

static void read_launch(struct word_reader *r, struct loader_step *s)
{
    int64_t threads = 1;

    s->function = (int32_t)word(r, 0, r->c->function_count - 1, "a kernel");
    for (int d = 0; d < 3; d++)
        s->grid[d] = (uint32_t)word(r, 1, d ? 65535 : INT32_MAX, "a grid");
    for (int d = 0; d < 3; d++)
        threads *= s->block[d] = (uint32_t)word(r, 1, 1024, "a block");
    for (int d = 0; d < 3; d++)
        s->cluster[d] = (uint32_t)word(r, 1, 16, "a cluster");
    s->smem = (uint32_t)word(r, 0, 1 << 20, "bytes of shared memory");
    s->overlap = word(r, 0, 1, "an overlap");
    s->argument_count = (int32_t)word(r, 0, MAX_ARGUMENTS, "a count of arguments");
    s->arguments = piece(r, s->argument_count, sizeof *s->arguments);
    if (!r->bad && threads > 1024)
        r->bad = !loader_tell("the launch list has a block of more than 1024 threads");
    for (int32_t i = 0; i < s->argument_count && !r->bad; i++) {
        struct loader_argument *a = &s->arguments[i];

        a->kind = (unsigned)word(r, 0, 2, "a kind of argument");
        if (a->kind == ARGUMENT_POINTER)
            a->at = read_source(r);
        else if (a->kind == ARGUMENT_BYTES)
            read_bytes(r, a);
        else
            a->map = (int32_t)word(r, 0, r->c->map_count - 1, "a map");
    }
}

static void read_steps(struct word_reader *r)
{
    struct loader_case *c = r->c;

    c->function_count = (int32_t)word(r, 0, MAX_STEPS, "a count of kernels");
    c->step_count = (int32_t)word(r, 0, MAX_STEPS, "a count of steps");
    c->steps = piece(r, c->step_count, sizeof *c->steps);
    for (int32_t i = 0; i < c->step_count && !r->bad; i++) {
        struct loader_step *s = &c->steps[i];

        s->is_launch = word(r, 0, 1, "a kind of step");
        if (s->is_launch) {
            read_launch(r, s);
        } else {
            s->at = read_source(r);
            s->value = (unsigned char)word(r, 0, 255, "a byte");
            s->bytes = word(r, 0, c->buffer_bytes[s->at.buffer] - s->at.offset, "bytes to set");
        }
    }
}

struct loader_case *case_read(const int64_t *words, size_t count, const char *blob, size_t bytes,
                              struct loader_room *room)
{
    struct word_reader r = {
        .at = words, .end = words + count, .blob = blob, .blob_bytes = bytes, .room = room};

    r.c = piece(&r, 1, sizeof *r.c);
    if (!r.c)
        return NULL;
    r.c->input_count = (int32_t)word(&r, 1, LOADER_TENSORS / 2, "a count of inputs");
    r.c->output_count = (int32_t)word(&r, 1, LOADER_TENSORS / 2, "a count of outputs");
    read_tensors(&r);
    read_workspaces(&r);
    read_maps(&r);
    read_steps(&r);
    if (!r.bad && r.at != r.end)
        r.bad = !loader_tell("the launch list continues after its end");
    return r.bad ? NULL : r.c;
}
