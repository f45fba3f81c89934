/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag.c - reduce a compiler's log to actionable errors.
 *
 * A log is read once into a short list of errors; each has the place that the compiler named, the
 * user's own line, the assertion's text and the user's call. The first one becomes the summary; its
 * meaning comes from a table of messages known from CuTe and NVRTC.
 *
 * EDG (NVRTC, nvcc) prints an error, the notes on it ("this candidate was
 * rejected because ..."), then the chain of instantiations. The chain belongs to the error, however
 * many notes are between them.
 */
#include "toolchain/diag.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ERRORS = 8, MAX_MESSAGE = 400, MAX_FRAME = 420, MAX_CALL = 100 };

static const char end_of_source[] = "end of source";
/* the file in which NVRTC puts the requested kernels */
static const char name_map[] = "__nv_name_map";

struct diag_fault {
    struct text file, message;
    int line;            /* in `file` */
    int user_line;       /* in the candidate; 0: unknown */
    int caller_line;     /* where a template of the candidate was used; 0: none */
    struct text printed; /* the source line the compiler printed */
    ptrdiff_t indent;    /* of that line */
    bool at_begin;       /* the caret stands under its first character */
    struct text notes;   /* "argument types are: (...)" */
    struct text frame;   /* the instantiation that the user's line asked for */
};

/* ---- what is known about texts ------------------------------------------------ */

static const struct meaning {
    const char *text; /* found in the message or the printed line */
    const char *means;
} meanings[] = {
    {"Mismatched Ranks",
     "a coordinate or tiler has another number of modes than the layout it is used "
     "on: give one index (or _) per mode of the tensor's shape"},
    {"Dynamic owning tensors not supported",
     "a register tensor (make_tensor<T>(layout)) needs a layout known at compile time: Int<N>{} or "
     "Shape<_8>{}, never a run-time int"},
    {"TiledCopy uses too few vals",
     "each thread must own at least as many elements as one copy atom "
     "moves: a uint128_t copy of float needs a value layout of 4"},
    {"TiledCopy uses too few thrs", "the thread layout has fewer threads than the copy atom needs"},
    {"failed to vectorize into registers",
     "the copy atom is wider than the contiguous run of elements each thread got: make the value "
     "layout contiguous in memory, use a smaller atom, or change the smem layout"},
    {"size<2>(A) == size<2>(B)",
     "A and B have different numbers of k tiles per thread (K must agree)"},
    {"size<1>(A) == size<1>(C)",
     "A and C have different numbers of m tiles per thread (M must agree)"},
    {"size<1>(B) == size<2>(C)",
     "B and C have different numbers of n tiles per thread (N must agree)"},
    {"AK == BK", "A and B have different extents along K"},
    {"AM == CM", "A and C have different extents along M"},
    {"BN == CN", "B and C have different extents along N"},
    {"no operator \"=\" matches these operands",
     "the destination does not take the source's elements: another type, or a const destination"},
    {"must be a modifiable lvalue",
     "the tensor is read-only here: its pointer is const, or the expression gives a copy"},
    {"weakly_congruent", "shape and tiler (or coordinate) are nested differently"},
    {"Static shape", "this algorithm needs sizes known at compile time (Int<N>)"},
    {"shape_div", "a static division does not come out even: the tile must divide the shape"},
    {"Divisibility Condition",
     "a static division does not come out even: the tile must divide the shape"},
    {"Divisibility", "a static division does not come out even: the tile must divide the shape"},
    {"Left-divide", "the tile does not divide the layout"},
    {"Index out of range", "get<I> or layout<I> beyond the number of modes"},
    {"namespace \"std\" has no member",
     "device code has no standard library: use cute::, cuda::std:: or plain CUDA"},
    {"Error in parsing name expression", "the plan launches a kernel that the device half does not "
                                         "define, or whose template arguments do "
                                         "not fit"},
    {"cannot open source file",
     "that header is not there: cutegen, cute, cutlass and cuda headers only"},
    {"A function without execution space", "write __device__ in front of the function"},
    {"calling a __host__ function", "that function is for the host only"},
    {"Copy_Traits not implemented", "this is not a copy operation of CuTe: name one that exists"},
    {"MMA_Traits not implemented", "this is not an MMA operation of CuTe: name one that exists"},
    {"Too many modes in tiler", "the tiler has more modes than the layout it divides"},
    {"Rank of tensor to be partitioned too small",
     "the tensor has fewer modes than the tile of the TiledCopy or TiledMMA"},
    {"closing brace of", "a \"{\" of this function is not closed: count its braces"},
    {"expected a \"}\"", "a \"{\" is not closed: count the braces from this line on"},
    {"no instance of", "no overload takes these arguments"},
    {"more than one instance of",
     "several overloads fit: qualify the name (cute::) or cast an argument"},
    {"expression must have a constant value",
     "a template argument or array size must be constexpr"},
    {"too much shared data",
     "static shared memory is limited to 48 KiB: use extern __shared__ and pass "
     "the bytes in CUTEGEN_LAUNCH"},
    {"undefined reference", "a plan may call nothing but the plan API of cutegen/kernel.h"},
    {"undefined symbol", "a plan may call nothing but the plan API of cutegen/kernel.h"},
    {"implicit declaration of function",
     "a plan may call nothing but the plan API of cutegen/kernel.h"},
    {"not permitted in C++", "the plan is also compiled as C++ on export: cast explicitly"},
    {"pointer of type 'void *' used in arithmetic",
     "use CUTEGEN_AT(type, tensor, index), or cast to a typed pointer first"},
    {"arithmetic on a pointer to void",
     "use CUTEGEN_AT(type, tensor, index), or cast to a typed pointer first"},
};

static const char *find(struct text t, const char *what)
{
    return t.len ? memmem(t.data, t.len, what, strlen(what)) : NULL;
}

static const char *meaning_of(const struct diag_fault *f)
{
    if (find(f->file, name_map))
        return "the plan launches a kernel that the device half does not define, or whose template "
               "arguments do not fit";
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
        const char *t = meanings[i].text;
        if ((f->message.len && memmem(f->message.data, f->message.len, t, strlen(t))) ||
            (f->printed.len && memmem(f->printed.data, f->printed.len, t, strlen(t))))
            return meanings[i].means;
    }
    return NULL;
}

/* ---- reading lines --------------------------------------------------------------- */

/* Empty at the end, and without a carriage return. */
static struct text next_line(struct text *rest)
{
    struct text line = {"", 0};
    text_next_line(rest, &line);
    if (line.len > 0 && line.data[line.len - 1] == '\r')
        line.len--;
    return line;
}

static int number_at(const char *p, const char *end)
{
    int n = 0;
    while (p < end && isdigit((unsigned char)*p) && n < 100000000)
        n = n * 10 + (*p++ - '0');
    return n;
}

/* After "error": skips " #20-D" and ": ". */
static struct text message_after(struct text line, const char *error_word)
{
    const char *end = line.data + line.len;
    const char *colon = memchr(error_word, ':', (size_t)(end - error_word));
    return colon ? text_trim((struct text){colon + 1, (size_t)(end - colon - 1)})
                 : (struct text){end, 0};
}

/* "file(12): error: text", as NVRTC and nvcc print. */
static bool parse_edg(struct text line, struct diag_fault *f)
{
    const char *error = find(line, "): error"), *p;
    if (error == NULL)
        error = find(line, "): catastrophic error");
    if (error == NULL || isspace((unsigned char)line.data[0]))
        return false;
    for (p = error; p > line.data && *p != '('; p--)
        ;
    *f = (struct diag_fault){.file = {line.data, (size_t)(p - line.data)},
                             .line = number_at(p + 1, error),
                             .message = message_after(line, error + 2)};
    return true;
}

/* "At end of source: error: expected a "}"": only a note has a line. */
static bool parse_end(struct text line, struct diag_fault *f)
{
    const char *error = find(line, ": error: ");
    if (!text_starts(line, "At end of source") || error == NULL)
        return false;
    *f = (struct diag_fault){.file = text_of(end_of_source),
                             .message = message_after(line, error + 2)};
    return true;
}

/* "file:12:5: error: text" and tcc's "file:12: error: text". */
static bool parse_gcc(struct text line, struct diag_fault *f)
{
    const char *error = find(line, ": error:"), *p, *colon;
    if (error == NULL)
        error = find(line, ": fatal error:");
    if (error == NULL || isspace((unsigned char)line.data[0]))
        return false;
    colon = error;
    for (int fields = 0; fields < 2; fields++) {
        for (p = colon - 1; p > line.data && isdigit((unsigned char)*p); p--)
            ;
        if (p <= line.data || *p != ':' || p + 1 == colon)
            break;
        colon = p;
    }
    if (colon == error)
        return false; /* "collect2: error: ld returned 1" */
    *f = (struct diag_fault){.file = {line.data, (size_t)(colon - line.data)},
                             .line = number_at(colon + 1, error),
                             .message = message_after(line, strstr(error, "error"))};
    return true;
}

/* ptxas, the linker, and any other line with "error". */
static bool parse_other(struct text line, struct diag_fault *f)
{
    const char *error = find(line, "error   :");
    if (text_starts(line, "ptxas") && error == NULL)
        error = find(line, "error  :") ? find(line, "error  :") : find(line, "error :");
    if (text_starts(line, "ptxas") && error != NULL) {
        *f = (struct diag_fault){.file = {"ptxas", 5}, .message = message_after(line, error)};
        return true;
    }
    if (find(line, "undefined reference to") || find(line, "undefined symbol")) {
        *f = (struct diag_fault){.file = {"link", 4}, .message = text_trim(line)};
        return true;
    }
    return false;
}

/* ---- the candidate's own line ------------------------------------------------------- */

static bool is_candidate(struct text file, const char *name)
{
    const char *base = path_base(name);
    size_t n = strlen(base);
    if (n > 0 && file.len >= n + 2 && memcmp(file.data + file.len - 2, ".c", 2) == 0 &&
        base[n - 1] != 'c')
        file.len -= 2; /* tcc is given candidate.cu.c */
    return file.len >= n && memcmp(file.data + file.len - n, base, n) == 0 &&
           (file.len == n || file.data[file.len - n - 1] == '/');
}

/* "... at line 8 of candidate.cu", or "at line 8" when the error is in it. */
static int line_in_candidate(struct text frame, const struct diag_fault *f, const char *name)
{
    const char *end = frame.data + frame.len, *p = NULL;
    for (const char *q = frame.data; (q = memmem(q, (size_t)(end - q), "at line ", 8)); q += 8)
        p = q;
    if (p == NULL)
        return 0;
    const char *of = memmem(p, (size_t)(end - p), " of ", 4);
    if (of == NULL)
        return is_candidate(f->file, name) ? number_at(p + 8, end) : 0;
    struct text file = text_trim((struct text){of + 4, (size_t)(end - of - 4)});
    return is_candidate(file, name) ? number_at(p + 8, end) : 0;
}

/* One line of the chain. The innermost line in the candidate is the user's, and what was
 * instantiated there is the user's call. */
static void read_frame(struct diag_fault *f, struct text frame, const char *name)
{
    int n = line_in_candidate(frame, f, name);
    if (f->user_line == 0 || f->frame.len == 0)
        f->frame = frame;
    if (n > 0 && f->user_line == 0)
        f->user_line = n;
    else if (n > 0 && n != f->user_line)
        f->caller_line = n;
}

static void read_context(struct diag_fault *f, struct text line, int index)
{
    struct text t = text_trim(line);
    if (t.len == 0)
        return;
    if (text_starts(t, "argument types are:") || text_starts(t, "object type is:") ||
        text_starts(t, "operand types are:")) {
        if (f->notes.len == 0)
            f->notes = t;
    } else if (t.data[0] == '^') {
        f->at_begin = f->printed.len > 0 && t.data - line.data == f->indent;
    } else if (index <= 4 && f->printed.len == 0 && !find(t, "detected during")) {
        f->printed = t;
        f->indent = t.data - line.data;
    }
}

/* candidate.cu(6): note #3196-D: to match this "{" */
static void read_note(struct diag_fault *f, struct text line, const char *name)
{
    const char *note = find(line, "): note"), *p = note;
    if (note == NULL || f->user_line > 0 || !find(line, "to match this"))
        return;
    while (p > line.data && *p != '(')
        p--;
    if (is_candidate((struct text){line.data, (size_t)(p - line.data)}, name))
        f->user_line = number_at(p + 1, note);
}

static bool is_frame(struct text t)
{
    return text_starts(t, "instantiation of") ||
           text_starts(t, "detected during instantiation of"); /* when there is only one */
}

static int read_faults(struct text log, const char *name, struct diag_fault *faults)
{
    enum { CLOSED, IN_ERROR, IN_NOTES } state = CLOSED;
    int count = 0, since = 0;
    for (struct text rest = log; rest.len > 0;) {
        struct text line = next_line(&rest);
        struct diag_fault f, *last = count > 0 ? &faults[count - 1] : NULL;
        if (parse_edg(line, &f) || parse_gcc(line, &f) || parse_end(line, &f) ||
            parse_other(line, &f)) {
            if (count == MAX_ERRORS)
                break;
            if (is_candidate(f.file, name))
                f.user_line = f.line;
            faults[count++] = f;
            state = IN_ERROR;
            since = 0;
        } else if (find(line, "): warning")) {
            state = CLOSED;
        } else if (state != CLOSED && is_frame(text_trim(line))) {
            read_frame(last, text_trim(line), name);
        } else if (state != CLOSED && (find(line, "): note") || find(line, ": note:"))) {
            read_note(last, line, name);
            state = IN_NOTES; /* candidates that the compiler rejected */
        } else if (state == IN_ERROR) {
            read_context(last, line, ++since);
        }
    }
    return count;
}

/* ---- telling ------------------------------------------------------------------------- */

char *diag_source_line(struct text source, int number, struct arena *a)
{
    struct text rest = source, line = {"", 0};
    for (int i = 0; i < number && rest.len > 0; i++)
        line = next_line(&rest);
    if (number < 1)
        line.len = 0;
    line = text_trim(line);
    return arena_strndup(a, line.data, line.len < 160 ? line.len : 160);
}

static char *clipped(struct arena *a, struct text t, size_t limit)
{
    return t.len <= limit ? arena_strndup(a, t.data, t.len)
                          : arena_printf(a, "%.*s...", (int)limit - 3, t.data);
}

/* Types quoted in a message are long: class "cute::Tensor<...>" has no member. */
static char *message_text(struct arena *a, struct text m)
{
    struct buf b = buf_init(4096);
    char *out;
    for (size_t i = 0; i < m.len;) {
        const char *close = m.data[i] == '"' ? memchr(m.data + i + 1, '"', m.len - i - 1) : NULL;
        if (close == NULL) {
            buf_putc(&b, m.data[i++]);
            continue;
        }
        struct text quoted = {m.data + i + 1, (size_t)(close - m.data) - i - 1};
        bool type = memchr(quoted.data, '<', quoted.len) && !memchr(quoted.data, '(', quoted.len);
        buf_printf(&b, "\"%s\"", type ? diag_type(quoted, a) : clipped(a, quoted, 200));
        i = (size_t)(close - m.data) + 1;
    }
    out = clipped(a, buf_text(&b), MAX_MESSAGE);
    buf_release(&b);
    return out;
}

/* For an assertion without text its condition is quoted. */
static char *fault_text(struct arena *a, const struct diag_fault *f)
{
    char *m = message_text(a, f->message);
    if (find(f->file, name_map))
        return arena_printf(a, "a kernel the plan launches: %s", m);
    if (f->printed.len && strcmp(m, "static assertion failed") == 0)
        return arena_printf(a, "%s: %s", m, clipped(a, f->printed, 200));
    return m;
}

/* The name before its parameters or, of a class, before "[with ". */
static struct text frame_name(struct text frame, const char *with)
{
    static const char any[] = "decltype(auto) ", call[] = "operator()";
    const char *begin = find(frame, any), *end, *name, *op = find(frame, call);
    begin = begin && begin < with ? begin + strlen(any) : frame.data;
    end = memchr(begin, '(', (size_t)(with - begin));
    end = end ? end : with;
    if (op != NULL && op < with && end == op + strlen(call) - 2)
        end += 2;
    while (end > begin && end[-1] == ' ')
        end--;
    name = end;
    for (int angle = 0; name > begin; name--) {
        angle += name[-1] == '>' ? 1 : name[-1] == '<' ? -1 : 0;
        if (angle == 0 && (name[-1] == ' ' || name[-1] == '"'))
            break;
    }
    return (struct text){name, (size_t)(end - name)};
}

/* instantiation of "R cute::gemm(...) [with A=..., B=...]" -> gemm with A = ..., B = ... */
static char *frame_text(struct arena *a, struct text frame)
{
    const char *with = find(frame, "[with "), *end;
    if (with == NULL)
        return NULL;
    struct text called = frame_name(frame, with);
    end = find(frame, "]\"");
    end = end ? end : frame.data + frame.len;
    char *args = diag_type((struct text){with + 6, (size_t)(end - with - 6)}, a);
    return arena_printf(a, "%.*s with %s", (int)called.len, called.data,
                        clipped(a, text_of(args), MAX_FRAME));
}

/* "/long/way/include/cute/layout.hpp" -> "cute/layout.hpp" */
static struct text short_file(struct text file)
{
    const char *p = find(file, "/include/");
    if (p != NULL)
        return (struct text){p + 9, file.len - (size_t)(p - file.data) - 9};
    return file;
}

static void add_finding(struct verdict *v, const struct diag_fault *f, struct text source,
                        const char *name, struct arena *a)
{
    struct finding *out = &v->findings[v->finding_count];
    struct text file = short_file(f->file);
    if (v->finding_count == MAX_FINDINGS)
        return;
    for (int i = 0; i < v->finding_count; i++)
        if (f->user_line > 0 &&
            strcmp(v->findings[i].where, arena_printf(a, "%s:%d", name, f->user_line)) == 0)
            return; /* one per line: later ones are consequences */
    out->kind = "compile error";
    out->where = f->user_line > 0 ? arena_printf(a, "%s:%d", name, f->user_line)
                 : find(f->file, name_map) || f->line == 0
                     ? name
                     : arena_printf(a, "%.*s:%d", (int)file.len, file.data, f->line);
    out->line = diag_source_line(source, f->user_line, a);
    out->text = fault_text(a, f);
    v->finding_count++;
}

/* "argument types are: (...)" with the types in CuTe's notation. */
static char *notes_text(struct arena *a, struct text notes)
{
    const char *colon = memchr(notes.data, ':', notes.len);
    size_t head = colon ? (size_t)(colon - notes.data) + 1 : notes.len;
    char *types = diag_type((struct text){notes.data + head, notes.len - head}, a);
    return arena_printf(a, "%.*s %s", (int)head, notes.data, clipped(a, text_of(types), 400));
}

static char *detail_text(const struct diag_fault *lead, const struct verdict *v, struct text source,
                         const char *name, struct arena *a)
{
    struct buf b = buf_init(DIAG_DETAIL_MAX);
    const char *means = meaning_of(lead);
    char *frame = lead->frame.len ? frame_text(a, lead->frame) : NULL;
    struct text file = short_file(lead->file);
    char *out;
    buf_printf(&b, "%s: error: %s\n", v->findings[0].where, v->findings[0].text);
    if (v->findings[0].line[0] != '\0')
        buf_printf(&b, "    %s\n", v->findings[0].line);
    if (lead->user_line > 0 && lead->user_line != lead->line && lead->line > 0 &&
        !find(lead->file, name_map))
        buf_printf(&b, "  raised at %.*s:%d: %s\n", (int)file.len, file.data, lead->line,
                   clipped(a, lead->printed, 160));
    if (lead->notes.len)
        buf_printf(&b, "  %s\n", notes_text(a, lead->notes));
    if (frame != NULL)
        buf_printf(&b, "  in %s\n", frame);
    if (lead->caller_line > 0)
        buf_printf(&b, "  used at %s:%d: %s\n", name, lead->caller_line,
                   diag_source_line(source, lead->caller_line, a));
    if (means != NULL)
        buf_printf(&b, "  means: %s\n", means);
    for (int i = 1; i < v->finding_count; i++)
        buf_printf(&b, "%s: error: %s\n", v->findings[i].where,
                   clipped(a, text_of(v->findings[i].text), 160));
    out = arena_strndup(a, b.data, b.len);
    buf_release(&b);
    return out;
}

/* The part of the user's line that calls `name` ("cute::gemm"), up to its closing parenthesis;
 * the whole line if there is no such call. */
static struct text call_text(struct text line, struct text name)
{
    const char *end = line.data + line.len, *at, *p;
    int open = 0;
    for (size_t i = name.len; i > 0; i--)
        if (name.data[i - 1] == ':') {
            name = (struct text){name.data + i, name.len - i};
            break;
        }
    p = name.len ? memchr(name.data, '<', name.len) : NULL;
    name.len = p ? (size_t)(p - name.data) : name.len;
    at = name.len ? memmem(line.data, line.len, name.data, name.len) : NULL;
    if (at == NULL)
        return line;
    for (p = at; p < end; p++) {
        open += *p == '(' ? 1 : *p == ')' ? -1 : 0;
        if (*p == ')' && open <= 0)
            return open == 0 ? (struct text){at, (size_t)(p - at) + 1} : line;
    }
    return line;
}

/* "candidate.cu:15: gemm(mma, a, b, c): static assertion failed": place, call, cause. */
static const char *summary_text(const struct diag_fault *f, const struct finding *lead,
                                struct arena *a)
{
    const char *with = f->frame.len ? find(f->frame, "[with ") : NULL;
    const char *comment = strstr(lead->line, "//");
    struct text line = {lead->line, comment ? (size_t)(comment - lead->line) : strlen(lead->line)};
    const char *cause = clipped(a, text_of(lead->text), 200);
    line = text_trim(line);
    if (f->line != f->user_line && with != NULL)
        line = call_text(line, frame_name(f->frame, with));
    while (line.len > 0 && line.data[line.len - 1] == ';')
        line.len--;
    if (line.len == 0)
        return arena_printf(a, "%s: %s", lead->where, cause);
    return arena_printf(a, "%s: %s: %s", lead->where, clipped(a, line, MAX_CALL), cause);
}

/* ptxas -v prints the size, then fails without a message. */
static bool find_smem_fault(struct text log, struct diag_fault *f, struct arena *a)
{
    for (struct text rest = log; rest.len > 0;) {
        struct text line = next_line(&rest);
        const char *unit = find(line, " bytes smem"), *p = unit;
        while (p != NULL && p > line.data && isdigit((unsigned char)p[-1]))
            p--;
        if (p != NULL && number_at(p, unit) > 49152) {
            *f = (struct diag_fault){.file = {"ptxas", 5}};
            f->message = text_of(arena_printf(
                a, "too much shared data: %d bytes of static shared memory, 49152 allowed",
                number_at(p, unit)));
            return true;
        }
    }
    return false;
}

/* The line where the plan names a kernel that could not be instantiated. */
static void place_name_fault(struct diag_fault *f, struct text source)
{
    const char *open = find(f->message, "was: \""), *end = f->message.data + f->message.len;
    struct text rest = source;
    if (!find(f->file, name_map))
        return;
    if (open == NULL && (open = find(f->message, "\"")) != NULL)
        open -= 5;
    if (open == NULL)
        return;
    open += 6;
    while (open < end && *open == ' ')
        open++;
    size_t n = 0;
    while (open + n < end && (isalnum((unsigned char)open[n]) || open[n] == '_' || open[n] == ':'))
        n++;
    for (int line = 1; n > 0 && rest.len > 0; line++) {
        struct text l = next_line(&rest);
        if (find(l, "LAUNCH") && memmem(l.data, l.len, open, n))
            f->user_line = line;
    }
}

/* A missing semicolon is noticed at the next token, which is often on a later line. */
static void place_semicolon(struct diag_fault *f, struct text source, struct arena *a)
{
    int line = f->user_line - 1;
    if (!text_starts(f->message, "expected a \";\"") || !f->at_begin || f->user_line != f->line)
        return;
    while (line > 0 && diag_source_line(source, line, a)[0] == '\0')
        line--;
    if (line == 0)
        return;
    f->user_line = f->line = line;
    f->message = text_of("expected a \";\" at the end of this line");
}

/* undefined reference to `puts': the last line of the source that names it. */
static void place_link_fault(struct diag_fault *f, struct text source)
{
    const char *open = find(f->message, "`"), *end = f->message.data + f->message.len;
    struct text rest = source;
    size_t n = 0;
    if (!text_equal(f->file, text_of("link")) || open == NULL)
        return;
    open++;
    while (open + n < end && (isalnum((unsigned char)open[n]) || open[n] == '_'))
        n++;
    for (int line = 1; n > 0 && rest.len > 0; line++) {
        struct text l = next_line(&rest);
        if (memmem(l.data, l.len, open, n))
            f->user_line = line; /* the last one: a use, not a declaration */
    }
}

/* Drops errors that cannot be the cause: a missing kernel if the source itself does not compile. An
 * unclosed brace changes the meaning of the rest, so it comes first. */
static int order_faults(struct diag_fault *faults, int count)
{
    int kept = 0;
    bool own = false;
    for (int i = 0; i < count; i++)
        own |= !find(faults[i].file, name_map);
    for (int i = 0; i < count; i++)
        if (!own || !find(faults[i].file, name_map))
            faults[kept++] = faults[i];
    for (int i = 1; i < kept; i++)
        if (text_equal(faults[i].file, text_of(end_of_source)) ||
            text_starts(faults[i].message, "closing brace of")) {
            struct diag_fault open = faults[i];
            memmove(&faults[1], &faults[0], (size_t)i * sizeof faults[0]);
            faults[0] = open;
            break;
        }
    return kept;
}

void diag_compile_error(struct text log, struct text source, const char *name, struct arena *a,
                        struct verdict *out)
{
    struct diag_fault faults[MAX_ERRORS];
    int count = read_faults(log, name, faults);

    memset(out, 0, sizeof *out);
    out->kind = VERDICT_COMPILE_ERROR;
    if (count == 0 && find_smem_fault(log, &faults[0], a))
        count = 1;
    if (count == 0) {
        out->summary = "the compiler failed without naming an error";
        out->detail = clipped(a, text_trim(log), DIAG_DETAIL_MAX);
        return;
    }
    count = order_faults(faults, count);
    for (int i = 0; i < count; i++) {
        place_name_fault(&faults[i], source);
        place_link_fault(&faults[i], source);
        place_semicolon(&faults[i], source, a);
        if (i > 0 && faults[0].user_line > 0 && text_equal(faults[i].file, text_of("ptxas")))
            continue; /* already reported with its line */
        add_finding(out, &faults[i], source, name, a);
    }
    out->summary = summary_text(&faults[0], &out->findings[0], a);
    out->detail = detail_text(&faults[0], out, source, name, a);
    out->advice = meaning_of(&faults[0]);
}

static const char *renamed(const char *text, const char *from, const char *to, struct arena *a)
{
    struct buf b = buf_init(8192);
    size_t n = strlen(from);
    char *out;
    if (text == NULL || strstr(text, from) == NULL)
        return text;
    while (*text != '\0') {
        if (strncmp(text, from, n) == 0) {
            buf_puts(&b, to);
            text += n;
        } else {
            buf_putc(&b, *text++);
        }
    }
    out = arena_strndup(a, b.data, b.len);
    buf_release(&b);
    return out;
}

void diag_rename(struct verdict *v, const char *from, const char *to, struct arena *a)
{
    v->summary = renamed(v->summary, from, to, a);
    v->detail = renamed(v->detail, from, to, a);
    for (int i = 0; i < v->finding_count; i++) {
        v->findings[i].where = renamed(v->findings[i].where, from, to, a);
        v->findings[i].text = renamed(v->findings[i].text, from, to, a);
    }
}
