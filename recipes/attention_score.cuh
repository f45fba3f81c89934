// attention_score.cuh - from a product of Q and K to a score, and from sums to results. Included by attention's recipes.
constexpr float MINUS_INFINITY = -cuda::std::numeric_limits<float>::infinity();
//! if linear
constexpr float UNSEEN = 0.0f; // the weight of a key that a query does not see
//! else
constexpr float UNSEEN = MINUS_INFINITY; // the score of a key that a query does not see
//! end

//! if scaled
// A product as a score, in units of log 2.
__device__ inline float ${kernel}_score2(float product)
{
    return __fmul_rn(product, $scale2); // not fused with what follows: a row's maximum has a weight of exactly 1
}

//! else
//! if linear
// The weight that becomes of one product.
//! else
// What becomes of one product before the softmax.
//! end
__device__ inline float ${kernel}_score($score_params)
{
    $score_body
}

//! if linear
__device__ inline float ${kernel}_score2($score_params)
{
    return ${kernel}_score(${factor}acc$score_names);
}

//! else
// The same in units of log 2. The lowest finite score stays finite: a row of them is a row of equals.
__device__ inline float ${kernel}_score2($score_params)
{
    float const score = ${kernel}_score(${factor}acc$score_names), x = __fmul_rn(score, 1.44269504f);
    return x == MINUS_INFINITY && score > MINUS_INFINITY ? -3.4028234e38f : x;
}

//! end
//! end
// A result from its sum and the sum of its row's weights.
__device__ inline float finish_row(float out, float sum)
{
//! if linear
    return out;
//! elif safe
    return sum == 0.0f ? 0.0f : out / sum;
//! else
    return out / sum; // NaN for a row without keys
//! end
}

