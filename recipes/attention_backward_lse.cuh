// attention_backward_lse.cuh - what gradients need of a row's softmax; included by their recipes.
// The logarithm of the sum of a row's weights, in units of log 2.
__device__ inline float row_lse(float best, float sum)
{
//! if safe
    return sum > 0.0f ? best + log2f(sum) : sum == 0.0f ? -MINUS_INFINITY : sum; // no keys: no weights
//! else
    return best + log2f(sum);
//! end
}

