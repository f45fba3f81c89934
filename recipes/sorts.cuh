// recipes/sorts.cuh - rows sorted by a block, long ones merged, the first few of a row found; for generic.cu.
//! if sorts

// An element of a row is one number: its key, then its place. No two are equal, so equal keys stay in their order.

// Order of values as that of unsigned numbers: NaN is the largest, -0 is 0.
template <class T>
__device__ uint32_t sort_key(T v)
{
    if constexpr (is_same<T, float>::value) {
        uint32_t const bits = __float_as_uint(v == 0.0f ? 0.0f : v);
        return v != v ? 0xffffffff : bits >> 31 ? ~bits : bits | 0x80000000;
    } else {
        return uint32_t(int32_t(v)) ^ 0x80000000;
    }
}

template <bool DESCENDING, class T>
__device__ uint64_t sort_entry(T v, int place)
{
    return uint64_t(DESCENDING ? ~sort_key(v) : sort_key(v)) << 32 | uint32_t(place);
}

constexpr uint64_t SORT_LAST = 0xffffffffffffffff; // after every element

// Where element i lies in shared memory: threads that walk runs of 16 meet in no bank.
__device__ int sort_slot(int i)
{
    return i + i / 16;
}

// Of the first `at` elements of two sorted runs, how many come from the left one?
template <class Left, class Right>
__device__ int merge_split(int at, int left_size, int right_size, Left left, Right right)
{
    int low = at > right_size ? at - right_size : 0, high = at < left_size ? at : left_size;
    while (low < high) {
        int const half = (low + high) / 2;
        if (left(half) < right(at - 1 - half))
            low = half + 1;
        else
            high = half;
    }
    return low;
}

// EACH elements from `at` on of the merged runs entries[left..middle) and entries[middle..end), in registers.
template <int EACH>
__device__ void merge_each(uint64_t const *entries, int left, int middle, int end, int at, uint64_t *mine)
{
    auto const from_left = [&](int i) { return entries[sort_slot(left + i)]; };
    auto const from_right = [&](int i) { return entries[sort_slot(middle + i)]; };
    int const split = merge_split(at, middle - left, end - middle, from_left, from_right);
    int a = left + split, b = middle + at - split;
    uint64_t x = a < middle ? entries[sort_slot(a)] : SORT_LAST, y = b < end ? entries[sort_slot(b)] : SORT_LAST;
    CUTE_UNROLL
    for (int e = 0; e < EACH; e++) {
        mine[e] = x < y ? x : y;
        if (x < y)
            x = ++a < middle ? entries[sort_slot(a)] : SORT_LAST;
        else
            y = ++b < end ? entries[sort_slot(b)] : SORT_LAST;
    }
}

// A thread's own elements: Batcher's network, all of it known when it is compiled.
template <int EACH>
__device__ void sort_each(uint64_t *mine)
{
    CUTE_UNROLL
    for (int run = 2; run <= EACH; run *= 2) {
        CUTE_UNROLL
        for (int apart = run / 2; apart > 0; apart /= 2) {
            CUTE_UNROLL
            for (int e = 0; e < EACH; e++) {
                if ((e & apart) == 0 && (mine[e] > mine[e | apart]) == ((e & run) == 0)) {
                    uint64_t const larger_one = mine[e];
                    mine[e] = mine[e | apart];
                    mine[e | apart] = larger_one;
                }
            }
        }
    }
}

// THREADS * EACH elements in shared memory, all written before; sorted when it returns.
template <int THREADS, int EACH>
__device__ void block_sort(uint64_t *entries)
{
    uint64_t mine[EACH];
    int const first = threadIdx.x * EACH;
    CUTE_UNROLL
    for (int e = 0; e < EACH; e++)
        mine[e] = entries[sort_slot(first + e)];
    sort_each<EACH>(mine);
    for (int run = EACH; run < THREADS * EACH; run *= 2) {
        CUTE_UNROLL
        for (int e = 0; e < EACH; e++)
            entries[sort_slot(first + e)] = mine[e];
        __syncthreads();
        int const left = first / (2 * run) * (2 * run);
        merge_each<EACH>(entries, left, left + run, left + 2 * run, first - left, mine);
        __syncthreads();
    }
    CUTE_UNROLL
    for (int e = 0; e < EACH; e++)
        entries[sort_slot(first + e)] = mine[e];
    __syncthreads();
}

// THREADS * EACH elements from `first` on, of a row whose runs of `width` are sorted and merged in pairs.
template <int THREADS, int EACH, class Entry>
__device__ void merge_tile(Entry entry, int size, int width, int first, uint64_t *entries)
{
    __shared__ int splits[2];
    int const left = first / (2 * width) * (2 * width);
    int const middle = size - left > width ? left + width : size, end = size - middle > width ? middle + width : size;
    int const at = first - left, count = end - first < THREADS * EACH ? end - first : THREADS * EACH;
    if (threadIdx.x < 2)
        splits[threadIdx.x] = merge_split(at + int(threadIdx.x) * count, middle - left, end - middle,
                                          [&](int i) { return entry(left + i); }, [&](int i) { return entry(middle + i); });
    __syncthreads();
    int const a = left + splits[0], a_count = splits[1] - splits[0], b = middle + at - splits[0];
    for (int s = threadIdx.x; s < count; s += THREADS)
        entries[sort_slot(s)] = s < a_count ? entry(a + s) : entry(b + s - a_count);
    __syncthreads();
    uint64_t mine[EACH];
    int const mine_first = threadIdx.x * EACH;
    if (mine_first < count)
        merge_each<EACH>(entries, 0, a_count, count, mine_first, mine);
    __syncthreads();
    CUTE_UNROLL
    for (int e = 0; e < EACH; e++)
        if (mine_first + e < count)
            entries[sort_slot(mine_first + e)] = mine[e];
    __syncthreads();
}

// How many of the first bits of an entry decide which COUNT of a row come first, and below what they are.
struct Selected {
    int shift;
    uint64_t prefix;
};

// Eight bits at a time: the entries that share the prefix so far are counted by their next digit.
template <int THREADS, int COUNT, class Entry>
__device__ Selected block_select(Entry entry, int size)
{
    __shared__ int counts[256], digit_and_need[3];
    uint64_t prefix = 0;
    int need = COUNT, shift = 64, all = size;
    while (need < all) {
        shift -= 8;
        for (int d = threadIdx.x; d < 256; d += THREADS)
            counts[d] = 0;
        __syncthreads();
        for (int s = threadIdx.x; s < size; s += THREADS) {
            uint64_t const x = entry(s);
            if (shift == 56 || x >> (shift + 8) == prefix)
                atomicAdd(&counts[x >> shift & 255], 1);
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            int mine = 0;
            for (int d = 0; d < 8; d++)
                mine += counts[threadIdx.x * 8 + d];
            int until = mine;
            for (int d = 1; d < 32; d *= 2) {
                int const other = __shfl_up_sync(0xffffffff, until, d);
                until += int(threadIdx.x) >= d ? other : 0;
            }
            int before = until - mine;
            for (int d = threadIdx.x * 8; before < need && until >= need && d < int(threadIdx.x) * 8 + 8; d++) {
                if (before + counts[d] >= need) {
                    digit_and_need[0] = d;
                    digit_and_need[1] = need - before;
                    digit_and_need[2] = counts[d];
                    break;
                }
                before += counts[d];
            }
        }
        __syncthreads();
        prefix = prefix << 8 | uint32_t(digit_and_need[0]);
        need = digit_and_need[1];
        all = digit_and_need[2];
    }
    return {shift, prefix};
}

// The first COUNT of a row, sorted, in entries[0..COUNT).
template <int THREADS, int EACH, int COUNT, class Entry>
__device__ void block_top(Entry entry, int size, uint64_t *entries)
{
    __shared__ int found;
    Selected const chosen = block_select<THREADS, COUNT>(entry, size);
    if (threadIdx.x == 0)
        found = 0;
    for (int j = COUNT + threadIdx.x; j < THREADS * EACH; j += THREADS)
        entries[sort_slot(j)] = SORT_LAST;
    __syncthreads();
    for (int s = threadIdx.x; s < size; s += THREADS) {
        uint64_t const x = entry(s);
        if (chosen.shift == 64 || x >> chosen.shift <= chosen.prefix)
            entries[sort_slot(atomicAdd(&found, 1))] = x;
    }
    __syncthreads();
    block_sort<THREADS, EACH>(entries);
}

// The last of the first COUNT of a row, in entries[0].
template <int THREADS, int COUNT, class Entry>
__device__ void block_nth(Entry entry, int size, uint64_t *entries)
{
    Selected const chosen = block_select<THREADS, COUNT>(entry, size);
    if (threadIdx.x == 0)
        entries[0] = 0;
    __syncthreads();
    uint64_t last = 0;
    for (int s = threadIdx.x; s < size; s += THREADS) {
        uint64_t const x = entry(s);
        if ((chosen.shift == 64 || x >> chosen.shift <= chosen.prefix) && x > last)
            last = x;
    }
    for (int d = 16; d > 0; d /= 2) {
        uint64_t const other = __shfl_xor_sync(0xffffffff, last, d);
        last = other > last ? other : last;
    }
    if (threadIdx.x % 32 == 0)
        atomicMax(reinterpret_cast<unsigned long long *>(entries), last);
    __syncthreads();
}
//! end
