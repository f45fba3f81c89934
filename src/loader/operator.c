/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operator.c - the operator's kernel for CUDA tensors, behind torch's stable C functions.
 *
 * torch passes only a stack of tensors, so each operator has a function of its own (kernels[]),
 * whose number is its index in `operators`. We own the tensors on the stack and replace them by the
 * results. An error leaves through torch's check(), which throws: everything is released before,
 * and this file is compiled so that exceptions pass through.
 */
#include "loader/loader.h"

#include <string.h>

enum { WORDS_PER_TENSOR = 3 + LOADER_RANK };

struct operator_state {
    loader_ask ask; /* NULL: a free slot */
    int32_t input_count, output_count, case_count;
    int64_t alignment;
    struct loader_case *cases[LOADER_CASES];
};

/* The library's state: torch's kernels carry no pointer that could lead to it. */
static struct operator_state operators[LOADER_OPERATORS];
static int32_t operator_count;
static struct torch_calls torch;
static struct driver_calls driver;
static int32_t cuda_type, byte_type;
static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER;

/* What a call holds and must release. */
struct operator_call {
    torch_tensor inputs[LOADER_TENSORS], copies[LOADER_TENSORS], outputs[LOADER_TENSORS], workspace;
    uint64_t addresses[LOADER_BUFFERS];
    int32_t device;
};

/* ---- which case ---------------------------------------------------------------------- */

static bool same_shape(torch_tensor t, const struct loader_tensor *want)
{
    int64_t rank, *sizes;
    int32_t dtype;

    return !torch.dtype(t, &dtype) && dtype == want->dtype && !torch.rank(t, &rank) &&
           rank == want->rank && !torch.sizes(t, &sizes) &&
           !memcmp(sizes, want->sizes, (size_t)rank * sizeof *sizes);
}

static int32_t find_case(const struct operator_state *op, const struct operator_call *call)
{
    for (int32_t n = 0; n < op->case_count; n++) {
        int32_t i = 0;

        while (i < op->input_count && same_shape(call->inputs[i], &op->cases[n]->tensors[i]))
            i++;
        if (i == op->input_count)
            return n;
    }
    return -1;
}

/* Has native.py word a refusal: it knows the names. */
static bool refuse(int32_t slot, const struct operator_call *call)
{
    const struct operator_state *op = &operators[slot];
    int64_t words[LOADER_TENSORS * WORDS_PER_TENSOR], *w = words, rank, *sizes;
    int32_t dtype, device;

    for (int32_t i = 0; i < op->input_count; i++) {
        if (torch.dtype(call->inputs[i], &dtype) || torch.rank(call->inputs[i], &rank) ||
            torch.device_index(call->inputs[i], &device) || torch.sizes(call->inputs[i], &sizes) ||
            rank > LOADER_RANK)
            return loader_tell("these tensors were not judged");
        *w++ = dtype;
        *w++ = device;
        *w++ = rank;
        memcpy(w, sizes, (size_t)rank * sizeof *w);
        w += rank;
    }
    op->ask(slot, -1, call->device, words, w - words);
    return loader_tell("these tensors were not judged");
}

/* Requires all tensors on one GPU and finds its number. */
static bool find_device(int32_t slot, struct operator_call *call)
{
    for (int32_t i = 0; i < operators[slot].input_count; i++) {
        int32_t type, index;

        if (torch.device_type(call->inputs[i], &type) ||
            torch.device_index(call->inputs[i], &index) || type != cuda_type || index < 0 ||
            index >= LOADER_DEVICES || (i && index != call->device))
            return refuse(slot, call);
        call->device = index;
    }
    return true;
}

static struct loader_device *device_of(int32_t slot, int32_t number, int32_t device)
{
    struct loader_case *c = operators[slot].cases[number];
    struct loader_device *d = atomic_load_explicit(&c->devices[device], memory_order_acquire);

    if (d)
        return d;
    if (!operators[slot].ask(slot, number, device, NULL, 0))
        d = atomic_load_explicit(&c->devices[device], memory_order_acquire);
    if (!d)
        loader_tell("the kernel could not be loaded");
    return d;
}

/* ---- memory -------------------------------------------------------------------------- */

static bool allocate(const struct loader_tensor *t, struct operator_call *call, torch_tensor *out,
                     uint64_t *address)
{
    void *data = NULL;

    if (torch.empty(t->rank, t->sizes, t->strides, t->dtype, cuda_type, call->device, out)) {
        *out = NULL;
        return loader_tell(
            "torch gave no memory, %lld bytes on cuda:%d: too little is left, or this "
            "is a child of fork (torch says which on stderr)",
            (long long)t->bytes, (int)call->device);
    }
    if (torch.data(*out, &data))
        return loader_tell("torch does not tell a tensor's address");
    *address = (uint64_t)(uintptr_t)data;
    return true;
}

/* Takes the inputs' addresses; copies an input whose strides or alignment differ from the judged
 * ones. */
static bool take_inputs(const struct operator_state *op, const struct loader_case *c,
                        struct operator_call *call)
{
    for (int32_t i = 0; i < op->input_count; i++) {
        const struct loader_tensor *want = &c->tensors[i];
        int64_t *strides;
        void *data;

        if (torch.strides(call->inputs[i], &strides) || torch.data(call->inputs[i], &data))
            return loader_tell("torch does not tell a tensor's address");
        call->addresses[i] = (uint64_t)(uintptr_t)data;
        if (call->addresses[i] % (uint64_t)op->alignment == 0 &&
            !memcmp(strides, want->strides, (size_t)want->rank * sizeof *strides))
            continue;
        if (!allocate(want, call, &call->copies[i], &call->addresses[i]))
            return false;
        if (torch.copy(call->copies[i], call->inputs[i], 0))
            return loader_tell("an input could not be copied");
    }
    return true;
}

static bool take_outputs(const struct operator_state *op, const struct loader_case *c,
                         struct operator_call *call, uint64_t *workspace)
{
    struct loader_tensor room = {
        .dtype = byte_type, .rank = 1, .sizes = {c->workspace_bytes}, .strides = {1}};

    for (int32_t i = 0; i < op->output_count; i++)
        if (!allocate(&c->tensors[op->input_count + i], call, &call->outputs[i],
                      &call->addresses[op->input_count + i]))
            return false;
    room.bytes = c->workspace_bytes;
    return !c->workspace_bytes || allocate(&room, call, &call->workspace, workspace);
}

static bool queue(int32_t slot, struct operator_call *call)
{
    const struct operator_state *op = &operators[slot];
    uint64_t workspace = 0;
    struct loader_device *d;
    void *stream;
    int32_t number;

    if (!find_device(slot, call))
        return false;
    number = find_case(op, call);
    if (number < 0)
        return refuse(slot, call);
    d = device_of(slot, number, call->device);
    if (!d || !take_inputs(op, op->cases[number], call) ||
        !take_outputs(op, op->cases[number], call, &workspace))
        return false;
    if (torch.stream(call->device, &stream))
        return loader_tell("torch does not tell its current stream");
    return !device_launch(&driver, op->cases[number], d, stream, call->addresses, workspace);
}

static void drop(torch_tensor *tensors, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (tensors[i])
            torch.delete(tensors[i]);
}

static void run(int32_t slot, uint64_t *stack, uint64_t inputs, uint64_t outputs)
{
    const struct operator_state *op = &operators[slot];
    struct operator_call call;
    bool ok = inputs == (uint64_t)op->input_count && outputs == (uint64_t)op->output_count;

    loader_quiet();
    if (!ok) {
        torch.check(false, __func__, "cutegen-loader", __LINE__, "a wrong number of tensors");
        return;
    }
    memset(call.copies, 0, sizeof *call.copies * inputs);
    memset(call.outputs, 0, sizeof *call.outputs * outputs);
    call.workspace = NULL;
    call.device = -1;
    for (int32_t i = 0; i < op->input_count; i++)
        call.inputs[i] = (torch_tensor)(uintptr_t)stack[i];
    ok = queue(slot, &call);
    drop(call.inputs, op->input_count);
    drop(call.copies, op->input_count);
    drop(&call.workspace, 1);
    if (!ok) {
        drop(call.outputs, op->output_count);
        torch.check(false, "run", "cutegen-loader", __LINE__, loader_said());
    }
    for (int32_t i = 0; ok && i < op->output_count; i++)
        stack[i] = (uint64_t)(uintptr_t)call.outputs[i];
}

/* ---- one function per operator ------------------------------------------------------- */

/* Eight times eight functions, numbered from 0. */
#define EIGHT(ROW, DO)                                                                             \
    DO(ROW * 8 + 0, ROW##0)                                                                        \
    DO(ROW * 8 + 1, ROW##1)                                                                        \
    DO(ROW * 8 + 2, ROW##2)                                                                        \
    DO(ROW * 8 + 3, ROW##3)                                                                        \
    DO(ROW * 8 + 4, ROW##4) DO(ROW * 8 + 5, ROW##5) DO(ROW * 8 + 6, ROW##6) DO(ROW * 8 + 7, ROW##7)
#define ALL(DO)                                                                                    \
    EIGHT(0, DO)                                                                                   \
    EIGHT(1, DO) EIGHT(2, DO) EIGHT(3, DO) EIGHT(4, DO) EIGHT(5, DO) EIGHT(6, DO) EIGHT(7, DO)
#define KERNEL(NUMBER, NAME)                                                                       \
    static void kernel_##NAME(uint64_t *stack, uint64_t inputs, uint64_t outputs)                  \
    {                                                                                              \
        run(NUMBER, stack, inputs, outputs);                                                       \
    }
#define ENTRY(NUMBER, NAME) [NUMBER] = kernel_##NAME,

ALL(KERNEL)

static void (*const kernels[LOADER_OPERATORS])(uint64_t *, uint64_t, uint64_t) = {ALL(ENTRY)};

/* ---- native.py's view ---------------------------------------------------------------- */

int loader_version(void)
{
    return LOADER_VERSION;
}

int loader_torch(const void *const *functions, size_t count, int32_t device_type,
                 int32_t byte_dtype)
{
    if (count != sizeof torch / sizeof(void *))
        return -1;
    pthread_mutex_lock(&setup_lock);
    if (memcmp(&torch, functions, sizeof torch) != 0)
        memcpy(&torch, functions, sizeof torch);
    cuda_type = device_type;
    byte_type = byte_dtype;
    pthread_mutex_unlock(&setup_lock);
    return 0;
}

int loader_driver(const void *const *functions, size_t count)
{
    if (count != sizeof driver / sizeof(void *))
        return -1;
    pthread_mutex_lock(&setup_lock);
    /* concurrent calls of other operators read it */
    if (memcmp(&driver, functions, sizeof driver) != 0)
        memcpy(&driver, functions, sizeof driver);
    pthread_mutex_unlock(&setup_lock);
    return 0;
}

int loader_operator(loader_ask ask, int32_t inputs, int32_t outputs, int64_t alignment)
{
    int slot = -1;

    loader_quiet();
    pthread_mutex_lock(&setup_lock);
    if (!ask || inputs < 1 || inputs > LOADER_TENSORS / 2 || outputs < 1 ||
        outputs > LOADER_TENSORS / 2 || alignment < 1)
        loader_tell("%d inputs and %d outputs are not within its limits", (int)inputs,
                    (int)outputs);
    else if (operator_count == LOADER_OPERATORS)
        loader_tell("it has no more than %d operators", LOADER_OPERATORS);
    else
        slot = operator_count++;
    if (slot >= 0)
        operators[slot] = (struct operator_state){
            .ask = ask, .input_count = inputs, .output_count = outputs, .alignment = alignment};
    pthread_mutex_unlock(&setup_lock);
    return slot;
}

static struct operator_state *state_of(int32_t slot)
{
    loader_quiet();
    if (slot >= 0 && slot < operator_count)
        return &operators[slot];
    loader_tell("there is no operator %d", (int)slot);
    return NULL;
}

static struct loader_case *case_of(int32_t slot, int32_t number, int32_t device)
{
    struct operator_state *op = state_of(slot);

    if (op && number >= 0 && number < op->case_count && device >= 0 && device < LOADER_DEVICES)
        return op->cases[number];
    loader_tell("there is no case %d for device %d", (int)number, (int)device);
    return NULL;
}

int loader_case(int32_t slot, const int64_t *words, size_t count, const char *blob, size_t bytes,
                void *memory, size_t memory_bytes)
{
    struct loader_room room = {memory, (unsigned char *)memory + memory_bytes};
    struct operator_state *op = state_of(slot);
    struct loader_case *c;

    if (!op)
        return -1;
    if (op->case_count == LOADER_CASES) {
        loader_tell("it has no more than %d cases", LOADER_CASES);
        return -1;
    }
    c = case_read(words, count, blob, bytes, &room);
    if (!c)
        return -1;
    if (c->input_count != op->input_count || c->output_count != op->output_count) {
        loader_tell("the cases have different numbers of tensors");
        return -1;
    }
    op->cases[op->case_count] = c;
    return op->case_count++;
}

int loader_register(int32_t slot, const char *space, const char *name, const char *key)
{
    void *library = NULL; /* kept as long as the process lives */

    if (!state_of(slot) || !torch.library_init)
        return -1;
    if (torch.library_init(space, key, "cutegen-loader", 1, &library) ||
        torch.library_impl(library, name, kernels[slot])) {
        loader_tell("torch did not take the kernel");
        return -1;
    }
    return 0;
}

int loader_ready(int32_t slot, int32_t number, int32_t device, void *context,
                 const uint64_t *functions, const int32_t *must_cluster, size_t function_count,
                 void *memory, size_t memory_bytes)
{
    struct loader_room room = {memory, (unsigned char *)memory + memory_bytes};
    struct loader_case *c = case_of(slot, number, device);
    struct loader_device *d;

    if (!c)
        return -1;
    if (function_count != (size_t)c->function_count) {
        loader_tell("%zu kernels for a case of %d", function_count, (int)c->function_count);
        return -1;
    }
    d = device_lay(c, context, functions, must_cluster, &room);
    if (!d)
        return -1;
    atomic_store_explicit(&c->devices[device], d, memory_order_release);
    return 0;
}

int loader_launch(int32_t slot, int32_t number, int32_t device, void *stream,
                  const uint64_t *addresses, size_t address_count, uint64_t workspace)
{
    struct loader_case *c = case_of(slot, number, device);
    struct loader_device *d = c ? atomic_load(&c->devices[device]) : NULL;
    uint64_t all[LOADER_BUFFERS];

    if (!d || address_count != (size_t)(c->input_count + c->output_count)) {
        loader_tell("%zu addresses, or a case that is not ready", address_count);
        return -1;
    }
    memcpy(all, addresses, address_count * sizeof *all);
    return device_launch(&driver, c, d, stream, all, workspace);
}
