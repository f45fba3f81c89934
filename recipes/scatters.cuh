// recipes/scatters.cuh - atomic operations that CUDA does not have, for generic.cu.
//! if scatters

// Floats of one sign are ordered as whole numbers, negative ones the other way round. NaN is larger than all.
__device__ void scatter_max(float *to, float v)
{
    int const bits = v != v ? 0x7fffffff : __float_as_int(v == 0.0f ? 0.0f : v);
    if (bits >= 0)
        atomicMax(reinterpret_cast<int *>(to), bits);
    else
        atomicMin(reinterpret_cast<unsigned *>(to), unsigned(bits));
}

__device__ void scatter_max(double *to, double v)
{
    long long const bits = v != v ? 0x7fffffffffffffff : __double_as_longlong(v == 0.0 ? 0.0 : v);
    if (bits >= 0)
        atomicMax(reinterpret_cast<long long *>(to), bits);
    else
        atomicMin(reinterpret_cast<unsigned long long *>(to), static_cast<unsigned long long>(bits));
}

__device__ void scatter_product(float *to, float v)
{
    unsigned *const place = reinterpret_cast<unsigned *>(to);
    unsigned found = *reinterpret_cast<unsigned volatile *>(place), before;
    do {
        before = found;
        found = atomicCAS(place, before, __float_as_uint(__uint_as_float(before) * v));
    } while (found != before);
}

__device__ void scatter_product(double *to, double v)
{
    unsigned long long *const place = reinterpret_cast<unsigned long long *>(to);
    unsigned long long found = *reinterpret_cast<unsigned long long volatile *>(place), before;
    do {
        before = found;
        found = atomicCAS(place, before, static_cast<unsigned long long>(__double_as_longlong(__longlong_as_double(before) * v)));
    } while (found != before);
}
//! end
