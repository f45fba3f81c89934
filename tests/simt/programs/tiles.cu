// tiles.cu - collectives of the tiles of a warp, each with a mask of its own; with BUG: divergent_collective, a tile names
// threads of another one.
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
__global__ void k(int *out)
{
    auto block = cg::this_thread_block();
    auto t8 = cg::tiled_partition<8>(block);
    auto t4 = cg::tiled_partition<4>(t8);
    int i = threadIdx.x;
    out[i] = t8.ballot(i % 3 == 0);
    out[64 + i] = cg::reduce(t8, i, cg::plus<int>());
    out[128 + i] = t8.any(i == 9);
    out[192 + i] = t8.match_any(i / 2 % 2);
    out[256 + i] = cg::reduce(t4, i, cg::less<int>());
    auto half = cg::binary_partition(t8, i % 2);
    out[320 + i] = half.num_threads() * 100 + half.thread_rank();
    out[384 + i] = cg::inclusive_scan(t8, i);
    if (i % 5 < 3) {
        auto c = cg::coalesced_threads();
        out[448 + i] = cg::reduce(c, i, cg::plus<int>()) * 100 + c.thread_rank();
        auto lab = cg::labeled_partition(c, i % 2);
        out[512 + i] = lab.num_threads() * 1000 + cg::reduce(lab, i, cg::plus<int>());
    } else { out[448 + i] = -1; out[512+i] = -1; }
    unsigned mask = i % 32 < 16 ? 0xffff : 0xffff0000;
#ifdef BUG
    if (i >= 40) mask |= 1;
#endif
    out[576 + i] = __popc(__ballot_sync(mask, i % 3 == 0)); // here
    out[640 + i] = __shfl_sync(mask, i, 3, 16);
    out[704 + i] = __popc(__match_any_sync(mask, i % 4));
}
int main()
{
    int *d, h[768];
    CHECK(cudaMalloc(&d, sizeof h));
    CHECK(cudaMemset(d, 0, sizeof h));
    k<<<1, 64>>>(d);
    CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    int bad = 0;
    auto want = [&](int at, int i, int x, const char *what) { if (h[at + i] != x) { if (bad++ < 20) std::printf("%s[%d] %d != %d\n", what, i, h[at + i], x); } };
    for (int i = 0; i < 64; i++) {
        int g = i / 8 * 8, b = 0, s = 0, any = 0, mm = 0, mn = i / 4 * 4, half = 0, hr = 0, sc = 0, thirds = 0;
        for (int k = 0; k < 8; k++) {
            int j = g + k;
            b |= (j % 3 == 0) << k; s += j; any |= j == 9; mm |= (j / 2 % 2 == i / 2 % 2) << k;
            half += j % 2 == i % 2; hr += j % 2 == i % 2 && j < i; if (j <= i) sc += j;
        }
        want(0, i, b, "ballot"); want(64, i, s, "reduce8"); want(128, i, any, "any"); want(192, i, mm, "match");
        want(256, i, mn, "reduce4"); want(320, i, half * 100 + hr, "binary"); want(384, i, sc, "scan");
        for (int j = i / 16 * 16; j < i / 16 * 16 + 16; j++) thirds += j % 3 == 0;
        int w = i / 32 * 32, cs = 0, cr = 0, ln = 0, ls = 0;
        for (int j = w; j < w + 32; j++) if (j % 5 < 3) { cs += j; cr += j < i; ln += j % 2 == i % 2; ls += j % 2 == i % 2 ? j : 0; }
        want(448, i, i % 5 < 3 ? cs * 100 + cr : -1, "coalesced");
        want(512, i, i % 5 < 3 ? ln * 1000 + ls : -1, "labeled");
        want(576, i, thirds, "ballot of 16");
        want(640, i, i / 16 * 16 + 3, "shfl");
        want(704, i, 4, "matchpop");
    }
    std::printf("%d wrong\n%s\n", bad, bad ? "no" : "ok");
    return bad != 0;
}
