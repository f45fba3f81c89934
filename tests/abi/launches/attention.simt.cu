// 3 parts, one after the other: what one makes, others read.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
// A result for the parts that follow: without gaps, in workspace.
static struct cutegen_tensor between(struct cutegen_call *call, int code, int bits, int ndim, int64_t *shape,
                                     int64_t *strides)
{
    struct cutegen_tensor t = call->out[0];
    int64_t stride = 1;

    t.dtype.code = (uint8_t)code;
    t.dtype.bits = (uint8_t)bits;
    t.ndim = ndim;
    t.shape = shape;
    t.strides = strides;
    t.byte_offset = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= shape[d];
    }
    t.data = cutegen_workspace(call, stride * (bits / 8));
    return t;
}

static int do_part_1(struct cutegen_call *task, const struct cutegen_tensor *reads,
                     struct cutegen_tensor *makes)
{
    struct cutegen_call mine = *task, *call = &mine;
    mine.in = reads;
    mine.in_count = 2;
    mine.out = makes;
    mine.out_count = 1;

    const struct cutegen_tensor *A = &call->in[0]; // q
    const struct cutegen_tensor *B = &call->in[1]; // k
    const struct cutegen_tensor *C = &call->out[0];

    CUTEGEN_REQUIRE(call, A->ndim == 4 && B->ndim == 4 && C->ndim == 4,
                    "A, B and C must be 4-, 4- and 4-dimensional");
    int64_t M = C->shape[2];
    int64_t N = C->shape[3];
    int64_t K = A->shape[3];
    int64_t L = C->shape[0] * C->shape[1];
    CUTEGEN_REQUIRE(call, A->strides[3] == 1, "dimension 3 of A must be contiguous");
    CUTEGEN_REQUIRE(call, B->strides[3] == 1, "dimension 3 of B must be contiguous");
    CUTEGEN_REQUIRE(call, C->strides[3] == 1, "dimension 3 of C must be contiguous");
    CUTEGEN_REQUIRE(call, cutegen_aligned(A, 16) && K % 4 == 0, "A must be read in vectors of 4 along K");
    CUTEGEN_REQUIRE(call, A->strides[2] % 4 == 0, "rows of A must start on 16 bytes");
    CUTEGEN_REQUIRE(call, A->strides[1] % 4 == 0, "rows of A must start on 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(B, 16) && K % 4 == 0, "B must be read in vectors of 4 along K");
    CUTEGEN_REQUIRE(call, B->strides[2] % 4 == 0, "rows of B must start on 16 bytes");
    CUTEGEN_REQUIRE(call, B->strides[1] % 4 == 0, "rows of B must start on 16 bytes");
    int64_t tile = 128;
    int64_t tiles_m = cutegen_ceil_div(M, tile), tiles_n = cutegen_ceil_div(N, tile);
    return CUTEGEN_LAUNCH(call, (part_1::attention_1_kernel<128, 128, 16>), cutegen_dim3(tiles_n, tiles_m, L),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, A),
                          CUTEGEN_DATA(float const, B), CUTEGEN_DATA(float, C), (int)M, (int)N, (int)K,
                          (int)A->strides[2], (int)A->strides[1], (int)B->strides[2], (int)B->strides[1],
                          (int)C->strides[2], (int)C->strides[1]);
}

static int do_part_2(struct cutegen_call *task, const struct cutegen_tensor *reads,
                     struct cutegen_tensor *makes)
{
    struct cutegen_call mine = *task, *call = &mine;
    mine.in = reads;
    mine.in_count = 1;
    mine.out = makes;
    mine.out_count = 1;

    const struct cutegen_tensor *q = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];

    CUTEGEN_REQUIRE(call, q->ndim == 4, "q must be 4-dimensional");
    CUTEGEN_REQUIRE(call, y->ndim == 4, "y must be 4-dimensional");
    int64_t n = q->shape[3];
    int64_t rows = q->shape[0] * q->shape[1] * q->shape[2];
    CUTEGEN_REQUIRE(call, q->strides[3] == 1, "dimension 3 of q must be contiguous");
    CUTEGEN_REQUIRE(call, y->strides[3] == 1, "dimension 3 of y must be contiguous");
    CUTEGEN_REQUIRE(call, cutegen_aligned(q, 16), "q must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(y, 16), "y must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, n % 4 == 0, "a row must be a multiple of 4 elements");
    CUTEGEN_REQUIRE(call, n <= 32 * 4 * 1, "a row must fit into the registers of a warp");
    return CUTEGEN_LAUNCH(call, (part_2::attention_2_kernel<128, 1>),
                          cutegen_dim3(cutegen_ceil_div(rows, 4), 1, 1),
                          cutegen_dim3(128, 1, 1), 0, CUTEGEN_DATA(float const, q), CUTEGEN_DATA(float, y),
                          (int)n, (int)rows, (int64_t)q->strides[2], (int64_t)y->strides[2]);
}

static int do_part_3(struct cutegen_call *task, const struct cutegen_tensor *reads,
                     struct cutegen_tensor *makes)
{
    struct cutegen_call mine = *task, *call = &mine;
    mine.in = reads;
    mine.in_count = 2;
    mine.out = makes;
    mine.out_count = 1;

    const struct cutegen_tensor *A = &call->in[0]; // q
    const struct cutegen_tensor *B = &call->in[1]; // v
    const struct cutegen_tensor *C = &call->out[0];

    CUTEGEN_REQUIRE(call, A->ndim == 4 && B->ndim == 4 && C->ndim == 4,
                    "A, B and C must be 4-, 4- and 4-dimensional");
    int64_t M = C->shape[2];
    int64_t N = C->shape[3];
    int64_t K = A->shape[3];
    int64_t L = C->shape[0] * C->shape[1];
    CUTEGEN_REQUIRE(call, A->strides[3] == 1, "dimension 3 of A must be contiguous");
    CUTEGEN_REQUIRE(call, B->strides[3] == 1, "dimension 3 of B must be contiguous");
    CUTEGEN_REQUIRE(call, C->strides[3] == 1, "dimension 3 of C must be contiguous");
    CUTEGEN_REQUIRE(call, cutegen_aligned(A, 16) && K % 4 == 0, "A must be read in vectors of 4 along K");
    CUTEGEN_REQUIRE(call, A->strides[2] % 4 == 0, "rows of A must start on 16 bytes");
    CUTEGEN_REQUIRE(call, A->strides[1] % 4 == 0, "rows of A must start on 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(B, 16) && N % 4 == 0, "B must be read in vectors of 4 along N");
    CUTEGEN_REQUIRE(call, B->strides[2] % 4 == 0, "rows of B must start on 16 bytes");
    CUTEGEN_REQUIRE(call, B->strides[1] % 4 == 0, "rows of B must start on 16 bytes");
    int64_t tile = 128;
    int64_t tiles_m = cutegen_ceil_div(M, tile), tiles_n = cutegen_ceil_div(N, tile);
    return CUTEGEN_LAUNCH(call, (part_3::attention_3_kernel<128, 128, 16>), cutegen_dim3(tiles_n, tiles_m, L),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, A),
                          CUTEGEN_DATA(float const, B), CUTEGEN_DATA(float, C), (int)M, (int)N, (int)K,
                          (int)A->strides[2], (int)A->strides[1], (int)B->strides[2], (int)B->strides[1],
                          (int)C->strides[2], (int)C->strides[1]);
}

CUTEGEN_PLAN(call)
{
    CUTEGEN_REQUIRE(call, call->in[0].ndim == 4 && call->in[0].shape[0] == 8,
                    "the shape of input 0 is written into the plan");
    CUTEGEN_REQUIRE(call, call->in[0].ndim == 4 && call->in[0].shape[1] == 16,
                    "the shape of input 0 is written into the plan");
    CUTEGEN_REQUIRE(call, call->in[0].ndim == 4 && call->in[0].shape[2] == 32,
                    "the shape of input 0 is written into the plan");
    CUTEGEN_REQUIRE(call, call->in[0].ndim == 4 && call->in[0].shape[3] == 32,
                    "the shape of input 0 is written into the plan");
    CUTEGEN_REQUIRE(call, call->in[1].ndim == 4 && call->in[1].shape[0] == 8,
                    "the shape of input 1 is written into the plan");
    CUTEGEN_REQUIRE(call, call->in[1].ndim == 4 && call->in[1].shape[1] == 16,
                    "the shape of input 1 is written into the plan");
    CUTEGEN_REQUIRE(call, call->in[1].ndim == 4 && call->in[1].shape[2] == 32,
                    "the shape of input 1 is written into the plan");
    CUTEGEN_REQUIRE(call, call->in[1].ndim == 4 && call->in[1].shape[3] == 32,
                    "the shape of input 1 is written into the plan");
    int64_t shape1[4] = {8, 16, call->in[0].shape[2], call->in[1].shape[2]}, strides1[4];
    struct cutegen_tensor t1 = between(call, 2, 32, 4, shape1, strides1);
    const struct cutegen_tensor in1[] = {call->in[0], call->in[1]};
    CUTEGEN_TRY(do_part_1(call, in1, &t1));
    int64_t shape2[4] = {t1.shape[0], t1.shape[1], t1.shape[2], t1.shape[3]}, strides2[4];
    struct cutegen_tensor t2 = between(call, 2, 32, 4, shape2, strides2);
    const struct cutegen_tensor in2[] = {t1};
    CUTEGEN_TRY(do_part_2(call, in2, &t2));
    CUTEGEN_REQUIRE(call, call->in[2].ndim == 4 && call->in[2].shape[0] == 8,
                    "the shape of input 2 is written into the plan");
    CUTEGEN_REQUIRE(call, call->in[2].ndim == 4 && call->in[2].shape[1] == 16,
                    "the shape of input 2 is written into the plan");
    CUTEGEN_REQUIRE(call, call->in[2].ndim == 4 && call->in[2].shape[2] == 32,
                    "the shape of input 2 is written into the plan");
    CUTEGEN_REQUIRE(call, call->in[2].ndim == 4 && call->in[2].shape[3] == 32,
                    "the shape of input 2 is written into the plan");
    const struct cutegen_tensor in3[] = {t2, call->in[2]};
    return do_part_3(call, in3, &call->out[0]);
}
#endif
