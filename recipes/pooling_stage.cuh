// pooling_stage.cuh - windows of a block collected in shared memory as they lie in the output, and stored in whole vectors.
// Included by pooling.cu.
    // Where in shared memory the thread's windows of row h are: as far behind a line as in the output.
    auto const place_of = [&](int h, int d) {
        int const row = own * GROUP + (h - h0) % GROUP, top = h - (h - h0) % GROUP; // bands are apart in memory
        return (whole ? own * (GROUP * PITCH) + int(begin_of(top, d) % LINE) + (h - top) * out_width : row * PITCH + int(begin_of(h, d) % LINE)) +
               (v - v0) * VEC;
    };
    // Puts the first `count` of a thread's windows there.
    auto const stage = [&](auto const &result, $type *to, int count) {
        // Lanes 8 apart begin with another window, so that a store of each lane is to another bank.
        int const turn = VEC == 4 ? threadIdx.x / 8 % 4 : 0;
        Tensor turned = make_tensor_like(result); // (VEC)
        CUTE_UNROLL
        for (int w = 0; w < VEC; ++w)
            turned(w) = turn & 1 ? result((w + 1) % VEC) : result(w);
        CUTE_UNROLL
        for (int w = 0; w < VEC; ++w) {
            int const e = (w + turn) % VEC;
            $type const x = turn & 2 ? turned((w + 2) % VEC) : turned(w);
            if (e < count)
                to[e] = x;
        }
    };
    // Stores `count` elements that are `begin` elements into the output.
    auto const store = [&]($type const *from, int64_t begin, int count, int first, int step) {
        int const lead = int(begin % LINE);
        for (int e = first * VEC; e < lead + count; e += step * VEC) {
            if (e >= lead && e + VEC <= lead + count) {
                copy(Vector{}, make_tensor(make_smem_ptr(from + e), Int<VEC>{}), make_tensor(make_gmem_ptr(y + begin - lead + e), Int<VEC>{}));
                continue;
            }
            CUTE_UNROLL
            for (int w = 0; w < VEC; ++w)
                if (e + w >= lead && e + w < lead + count)
                    y[begin - lead + e + w] = from[e + w];
        }
    };
    // Stores what was collected: of each band GROUP rows from row `down` of it on.
    auto const flush = [&](int down, int d) {
        int const along = min(LANES * VEC, out_width - v0 * VEC);
        __syncthreads();
        if (whole && h0 + down < out_height)
            store(sY + own * (GROUP * PITCH), begin_of(h0 + down, d), min(GROUP, min(ROWS - down, out_height - h0 - down)) * out_width,
                  threadIdx.x % LANES, LANES);
        for (int r = 0; r < GROUP && !whole; ++r)
            if (h0 + down + r < out_height && down + r < ROWS)
                store(sY + (own * GROUP + r) * PITCH, begin_of(h0 + down + r, d), along, threadIdx.x % LANES, LANES);
        __syncthreads();
    };
