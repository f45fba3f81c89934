// recipes/special.cuh - functions that CUDA's mathematics does not have, for generic.cu.
//! if special

// Those with long sums are computed in double and rounded once; digamma and trigamma in their own type, a few units in
// the last place off, beside a zero of theirs a few units of the terms that cancel.

// Whole numbers in the order of these: NaN is the largest, -0 is 0.
__device__ int64_t special_order(double v)
{
    int64_t const bits = __double_as_longlong(v == 0.0 ? 0.0 : v);
    return v != v ? 0x7fffffffffffffff : bits < 0 ? bits ^ 0x7fffffffffffffff : bits;
}

// Psi: the recurrence up to 6, then the asymptotic series; reflected below 0.
__device__ float special_digamma(float x)
{
    if (x == 0.0f)
        return copysignf(__int_as_float(0x7f800000), -x);
    float y = 0.0f;
    if (x < 0.0f) {
        if (x == floorf(x))
            return __int_as_float(0x7fffffff);
        y = -3.14159265f * cospif(x) / sinpif(x);
        x = 1.0f - x;
    }
    float less = 0.0f;
    for (; x < 6.0f; x += 1.0f)
        less += 1.0f / x;
    float const z = 1.0f / (x * x);
    float const tail = z * (0.0833333333f - z * (0.00833333333f - z * (0.00396825397f - z * 0.00416666667f)));
    return y + (logf(x) - 0.5f / x - tail) - less;
}

__device__ double special_digamma(double x)
{
    if (x == 0.0)
        return copysign(__longlong_as_double(0x7ff0000000000000), -x);
    double y = 0.0;
    if (x < 0.0) {
        if (x == floor(x))
            return __longlong_as_double(0x7fffffffffffffff);
        y = -3.1415926535897931 * cospi(x) / sinpi(x);
        x = 1.0 - x;
    }
    double less = 0.0;
    for (; x < 10.0; x += 1.0)
        less += 1.0 / x;
    double const z = 1.0 / (x * x), factors[] = {691.0 / 32760, -1.0 / 132, 1.0 / 240, -1.0 / 252, 1.0 / 120, -1.0 / 12};
    double tail = -z / 12;
    CUTE_UNROLL
    for (int i = 0; i < 6; i++)
        tail = z * (tail + factors[i]);
    return y + (log(x) - 0.5 / x + tail) - less;
}

// Its derivative, the same way.
__device__ float special_trigamma(float x)
{
    float sign = 1.0f, y = 0.0f;
    if (x < 0.5f) {
        float const s = sinpif(x);
        sign = -1.0f;
        y = -9.86960440f / (s * s);
        x = 1.0f - x;
    }
    float more = 0.0f;
    for (; x < 6.0f; x += 1.0f)
        more += 1.0f / (x * x);
    float const z = 1.0f / (x * x);
    float const tail = 1.0f + 0.5f / x + z * (0.166666667f - z * (0.0333333333f - z * (0.0238095238f - z * 0.0333333333f)));
    return sign * (y + more + tail / x);
}

__device__ double special_trigamma(double x)
{
    double sign = 1.0, y = 0.0;
    if (x < 0.5) {
        double const s = sinpi(x);
        sign = -1.0;
        y = -9.8696044010893586 / (s * s);
        x = 1.0 - x;
    }
    double more = 0.0;
    for (; x < 10.0; x += 1.0)
        more += 1.0 / (x * x);
    double const z = 1.0 / (x * x), factors[] = {-691.0 / 2730, 5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30, 1.0 / 6};
    double tail = z * 7 / 6;
    CUTE_UNROLL
    for (int i = 0; i < 6; i++)
        tail = z * (tail + factors[i]);
    return sign * (y + more + (1.0 + 0.5 / x + tail) / x);
}

// Hurwitz' zeta: nine terms and more until q is 9, then Euler and Maclaurin.
__device__ double special_zeta(double x, double q)
{
    constexpr int TERMS = 12;
    double const divisors[TERMS] = {12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10,
                                    -2.950130727918164224e12, 1.1646782814350067249e14, -4.5979787224074726105e15,
                                    1.8152105401943546773e17, -7.1661652561756670113e18}; // (2k)! / B(2k)
    if (x == 1.0)
        return __int_as_float(0x7f800000);
    if (!(x > 1.0) || q != q)
        return __int_as_float(0x7fffffff);
    if (q <= 0.0 && q == floor(q))
        return __int_as_float(0x7f800000);
    if (q <= 0.0 && x != floor(x))
        return __int_as_float(0x7fffffff);
    double a = q, b = 0.0, sum = pow(a, -x);
    for (int i = 0; i < 9 || a <= 9.0; i++) {
        a += 1.0;
        b = pow(a, -x);
        sum += b;
        if (fabs(b) < 1e-17 * fabs(sum))
            return sum;
    }
    sum += b * a / (x - 1.0) - 0.5 * b;
    double factor = 1.0, k = 0.0;
    for (int i = 0; i < TERMS; i++) {
        factor *= x + k;
        b /= a;
        double const term = factor * b / divisors[i];
        sum += term;
        if (fabs(term) < 1e-17 * fabs(sum))
            break;
        factor *= x + k + 1.0;
        b /= a;
        k += 2.0;
    }
    return sum;
}

__device__ float special_zeta(float x, float q)
{
    return float(special_zeta(double(x), double(q)));
}

// The incomplete gamma function between 0 and x, over Gamma(a), and what is missing to 1: a series where x is small
// beside a, else a continued fraction.
__device__ double special_gamma_part(double a, double x, bool rest)
{
    constexpr int MOST = 2000;
    double const factor = exp(a * log(x) - x - lgamma(a));
    if (x <= 1.0 || x <= a) {
        double term = 1.0 / a, sum = term;
        for (double n = a + 1.0; term > 1e-17 * sum && n < a + MOST; n += 1.0) {
            term *= x / n;
            sum += term;
        }
        return rest ? 1.0 - sum * factor : sum * factor;
    }
    double b = x + 1.0 - a, c = 1e300, d = 1.0 / b, h = d;
    for (int i = 1; i < MOST; i++) {
        double const an = -i * (i - a);
        b += 2.0;
        d = an * d + b;
        d = 1.0 / (fabs(d) < 1e-300 ? 1e-300 : d);
        c = b + an / c;
        c = fabs(c) < 1e-300 ? 1e-300 : c;
        h *= d * c;
        if (fabs(d * c - 1.0) < 1e-15)
            break;
    }
    return rest ? h * factor : 1.0 - h * factor;
}

template <bool REST>
__device__ double special_incomplete(double a, double x)
{
    double const inf = __int_as_float(0x7f800000), nan = __int_as_float(0x7fffffff), none = REST ? 1.0 : 0.0;
    if (!(a >= 0.0) || !(x >= 0.0))
        return nan;
    if (a == 0.0)
        return x > 0.0 ? 1.0 - none : nan;
    if (x == 0.0)
        return none;
    if (a == inf)
        return x == inf ? nan : none;
    if (x == inf)
        return 1.0 - none;
    return special_gamma_part(a, x, REST);
}

template <class T>
__device__ T special_igamma(T a, T x)
{
    return T(special_incomplete<false>(a, x));
}

template <class T>
__device__ T special_igammac(T a, T x)
{
    return T(special_incomplete<true>(a, x));
}
//! end
