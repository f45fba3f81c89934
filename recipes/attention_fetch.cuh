// attention_fetch.cuh - how one thread brings tiles of K and V to the ring; a part of attention's kernels for sm_90a.
//! if planes
            auto const fetch_k = [&](int block, int plane) __attribute__((always_inline)) {
//! else
            auto const fetch_k = [&](int block) __attribute__((always_inline)) {
//! end
                wait_barrier(empty[p.slot], p.turn);
                set_barrier_transaction_bytes(full[p.slot], TILE_N * WIDTH * 2);
                CUTE_UNROLL
                for (int c = 0; c < WIDTH / CHUNK; ++c)
//! if given
                    SM90_TMA_LOAD_5D::copy(plane ? &map_k_low : &map_k, &full[p.slot], USUAL, ring + p.slot * SLOT + c * TILE_N * CHUNK,
                                           c * CHUNK, block * TILE_N, $k_place);
//! else
                    SM90_TMA_LOAD_5D::copy(&map_k, &full[p.slot], USUAL, ring + p.slot * SLOT + c * TILE_N * CHUNK,
//! end
//! if given
//! elif planes
                                           c * CHUNK, block * TILE_N, $k_head, plane, 0);
//! else
                                           c * CHUNK, block * TILE_N, $k_place);
//! end
                p.next<STAGES>();
            };
//! if planes
            auto const fetch_v = [&](int block, int plane) __attribute__((always_inline)) {
//! else
            auto const fetch_v = [&](int block) __attribute__((always_inline)) {
//! end
                wait_barrier(empty[p.slot], p.turn);
                set_barrier_transaction_bytes(full[p.slot], TILE_N * WIDTH_V * 2);
                CUTE_UNROLL
                for (int c = 0; c < WIDTH_V / CHUNK_V; ++c)
//! if given
                    SM90_TMA_LOAD_5D::copy(plane ? &map_v_low : &map_v, &full[p.slot], USUAL, ring + p.slot * SLOT + c * TILE_N * CHUNK_V,
                                           c * CHUNK_V, block * TILE_N, $v_place);
//! else
                    SM90_TMA_LOAD_5D::copy(&map_v, &full[p.slot], USUAL, ring + p.slot * SLOT + c * TILE_N * CHUNK_V,
//! end
//! if given
//! elif planes
                                           c * CHUNK_V, block * TILE_N, $v_head, plane, 0);
//! else
                                           c * CHUNK_V, block * TILE_N, $v_place);
//! end
                p.next<STAGES>();
            };
