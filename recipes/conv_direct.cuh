// conv_direct.cuh - a filter of one tap: x is split on its way through shared memory; a part of convolution.cu.
//
// A block keeps the weights of TILE_K output channels and walks over tiles of pixels. One warpgroup brings chunks of 32
// channels by TMA and splits them, each chunk with a scale of its own; two multiply, and store by TMA.
constexpr int TERMS = 32; // channels of a chunk
constexpr int CHUNKS = (C_IN + TERMS - 1) / TERMS;
//! if few_rows
constexpr int TILE_K = 64;  // output channels
constexpr int TILE_P = 256; // pixels, 128 of each warpgroup
//! else
constexpr int TILE_K = 128; // output channels, 64 of each warpgroup
constexpr int TILE_P = 128; // pixels
//! end
//! if single
constexpr int PRODUCTS = 1; // high parts alone
//! else
constexpr int PRODUCTS = 3; // hi lo, lo hi, hi hi
//! end
constexpr int SLOT_W = TILE_K * 2 * TERMS, SLOT_P = TILE_P * TERMS; // elements: weights' high and low parts; one part of x
constexpr int OUT_BYTES = 2 * 64 * 128 * 4;                        // a tile on its way out
constexpr int PLACES_P = TILE_P == 256 && CHUNKS > 2 ? 1 : 2;      // chunks that are split
constexpr int TAKEN = 1024 + CHUNKS * SLOT_W * 2 + PLACES_P * 2 * SLOT_P * 2 + OUT_BYTES + 8 * TILE_P * 4 + TILE_K * 4 + 1024;
constexpr int FITTING = (232448 - TAKEN) / (SLOT_P * 4), STAGES = FITTING < 4 ? FITTING : 4; // chunks as they come
constexpr int SMEM_BYTES = TAKEN + STAGES * SLOT_P * 4;
static_assert(STAGES >= 2, "C_IN is too large for the direct form");
