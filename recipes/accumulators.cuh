// recipes/accumulators.cuh - what reductions carry: each has a neutral value, takes elements in, and merges
// with another. `from` is the one that another lane holds. Included by the recipes that reduce.
//! if exponentials
__device__ inline float exponential(float x)
{
//! if fast_math and narrow
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1.44269504f * x)); // what is too small for a normal number is 0
    return y;
//! elif fast_math
    return exp2f(1.44269504f * x); // the special function unit's own
//! else
    return expf(x);
//! end
}

//! end
//! if uses_sum or pair_uses_sum and not one_pass
struct Sum {
    float value;
    static __device__ Sum none() { return {0.0f}; }
    __device__ void add(float x) { value += x; }
    __device__ void merge(Sum o) { value += o.value; }
    __device__ Sum from(int lane) const { return {__shfl_xor_sync(0xffffffff, value, lane)}; }
};

//! end
//! if uses_prod
struct Prod {
    float value;
    static __device__ Prod none() { return {1.0f}; }
    __device__ void add(float x) { value *= x; }
    __device__ void merge(Prod o) { value *= o.value; }
    __device__ Prod from(int lane) const { return {__shfl_xor_sync(0xffffffff, value, lane)}; }
};

//! end
//! if uses_max or pair_uses_max and not one_pass
struct Max { // NaN wins
    float value;
    static __device__ Max none() { return {__int_as_float(0xff800000)}; }
    __device__ void add(float x) { value = x > value || x != x ? x : value; }
    __device__ void merge(Max o) { add(o.value); }
    __device__ Max from(int lane) const { return {__shfl_xor_sync(0xffffffff, value, lane)}; }
};

//! end
//! if uses_min
struct Min { // NaN wins
    float value;
    static __device__ Min none() { return {__int_as_float(0x7f800000)}; }
    __device__ void add(float x) { value = x < value || x != x ? x : value; }
    __device__ void merge(Min o) { add(o.value); }
    __device__ Min from(int lane) const { return {__shfl_xor_sync(0xffffffff, value, lane)}; }
};

//! end
//! if uses_argmax
struct ArgMax { // the first of the largest; NaN is larger than all
    float value;
    int index;
    static __device__ ArgMax none() { return {__int_as_float(0xff800000), 0x7fffffff}; }
    __device__ void add(float x, int i) // places come in order
    {
        bool const better = !(x <= value) && value == value;
        value = better ? x : value;
        index = better ? i : index;
    }
    __device__ void merge(ArgMax o)
    {
        bool const same = o.value == value || (o.value != o.value && value != value);
        if (same ? o.index < index : !(o.value <= value) && value == value) {
            value = o.value;
            index = o.index;
        }
    }
    __device__ int place() const { return index == 0x7fffffff ? 0 : index; } // nothing was better than none
    __device__ ArgMax from(int lane) const
    {
        return {__shfl_xor_sync(0xffffffff, value, lane), __shfl_xor_sync(0xffffffff, index, lane)};
    }
};

//! end
//! if uses_argmin
struct ArgMin { // the first of the smallest; NaN is smaller than all
    float value;
    int index;
    static __device__ ArgMin none() { return {__int_as_float(0x7f800000), 0x7fffffff}; }
    __device__ void add(float x, int i) // places come in order
    {
        bool const better = !(x >= value) && value == value;
        value = better ? x : value;
        index = better ? i : index;
    }
    __device__ void merge(ArgMin o)
    {
        bool const same = o.value == value || (o.value != o.value && value != value);
        if (same ? o.index < index : !(o.value >= value) && value == value) {
            value = o.value;
            index = o.index;
        }
    }
    __device__ int place() const { return index == 0x7fffffff ? 0 : index; } // nothing was better than none
    __device__ ArgMin from(int lane) const
    {
        return {__shfl_xor_sync(0xffffffff, value, lane), __shfl_xor_sync(0xffffffff, index, lane)};
    }
};

//! end
//! if one_pass and maxsum
struct MaxSum { // the maximum, and the sum of exponentials below it
    float first, second;
    static __device__ MaxSum none() { return {-3.402823466e+38f, 0.0f}; }
    template <class Values>
    __device__ void add(Values const &x)
    {
        float largest = first;
        CUTE_UNROLL
        for (int v = 0; v < size(x); ++v)
            largest = fmaxf(largest, x(v));
        second *= exponential(first - largest);
        first = largest;
        CUTE_UNROLL
        for (int v = 0; v < size(x); ++v)
            second += exponential(x(v) - largest);
    }
    __device__ void merge(MaxSum o)
    {
        float const largest = fmaxf(first, o.first);
        second = second * exponential(first - largest) + o.second * exponential(o.first - largest);
        first = largest;
    }
    __device__ MaxSum from(int lane) const
    {
        return {__shfl_xor_sync(0xffffffff, first, lane), __shfl_xor_sync(0xffffffff, second, lane)};
    }
};

//! end
//! if one_pass and moments
struct Moments { // the mean, and the sum of squares about it (Chan, Golub, LeVeque)
    float first, second, count;
    static __device__ Moments none() { return {0.0f, 0.0f, 0.0f}; }
    template <class Values>
    __device__ void add(Values const &x)
    {
        constexpr int N = decltype(size(x))::value;
        Moments some{0.0f, 0.0f, float(N)};
        CUTE_UNROLL
        for (int v = 0; v < N; ++v)
            some.first += x(v);
        some.first /= N;
        CUTE_UNROLL
        for (int v = 0; v < N; ++v)
            some.second += (x(v) - some.first) * (x(v) - some.first);
        merge(some);
    }
    __device__ void merge(Moments o)
    {
        float const total = count + o.count, apart = o.first - first;
        float weight = 0.5f; // halves of a row hold as many elements
        if (count != o.count)
            weight = o.count / total;
        second += o.second + apart * apart * count * weight;
        first += apart * weight;
        count = total;
    }
    __device__ Moments from(int lane) const
    {
        return {__shfl_xor_sync(0xffffffff, first, lane), __shfl_xor_sync(0xffffffff, second, lane),
                __shfl_xor_sync(0xffffffff, count, lane)};
    }
};

//! end
//! if fast_math
//! each helper
// $helper_words
__device__ inline float $helper(float x)
{
    $helper_body
}

//! end
//! end
//! each function
//! if not second or not one_pass
__device__ inline $value $function($function_params)
{
//! if fast_math
    $quick
//! else
    $body
//! end
}

//! end
//! end
