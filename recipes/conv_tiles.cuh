// conv_tiles.cuh - tiles and rings of the product on sm_90a; a part of convolution.cu.
constexpr int PIECE = 128;  // pixels of one accumulator
//! if small_tiles
constexpr int PIECES = 1;   // of a warpgroup: tiles are few
//! else
constexpr int PIECES = 2;   // of a warpgroup
//! end
//! if few_rows
constexpr int TILE_K = 64;  // output channels
constexpr int TILE_P = 256 * PIECES; // pixels, half of them of each warpgroup
//! else
constexpr int TILE_K = 128; // output channels, 64 of each warpgroup
constexpr int TILE_P = 128 * PIECES; // pixels
//! end
//! if split_sums
constexpr int SPLITS = $splits; // blocks that share the terms of a result
//! end
//! if share
//! if interleaved
constexpr int BEHIND = WALK_TAPS_W - 1; // pixels that the last tap reads behind a tile
//! else
constexpr int BEHIND = (WALK_TAPS_W - 1) * STEP_W; // pixels that the last tap reads behind a tile
//! end
constexpr int HALO = (BEHIND * ROW + 511) / 512 * (512 / ROW); // pixels behind a tile: slots begin on 1024 bytes
constexpr int RUN = WALK_TAPS_W; // taps that share a slot of pixels
//! else
constexpr int HALO = 0;     // pixels behind a tile
constexpr int RUN = 1;      // taps that share a slot of pixels
//! end
constexpr int BOX_P = TILE_P < 256 ? TILE_P : 256; // pixels that TMA brings at a time
constexpr int SLOT_P = (TILE_P + HALO) * ROW, SLOT_W = TILE_K * ROW; // elements
//! if bulk
constexpr int OUT_BYTES = 8 * 2 * 16 * 32 * 4; // results on their way out: a warp's 16 channels of 32 pixels, twice
//! elif aligned
constexpr int PITCH = 72;   // of a row of 64 results on its way out
constexpr int OUT_BYTES = 8 * 16 * PITCH * 4;
//! elif split_sums
constexpr int OUT_BYTES = 0; // results leave from registers
//! else
constexpr int PITCH = 40;   // of a row of 32 results on its way out
constexpr int OUT_BYTES = 8 * 16 * PITCH * 4;
//! end
constexpr int ROOM = 232448 - 1024 - 512 - OUT_BYTES;
// Slots: two or more of pixels must fit, and weights are needed for every tap of them.
//! if share and bulk
constexpr int WANTED_W = (TILE_K == 128 ? 5 : 7) * (64 / ROW), STAGES_W = WANTED_W < 12 ? WANTED_W : 12;
//! elif share and aligned
constexpr int WANTED_W = (TILE_K == 128 ? 5 : 6) * (64 / ROW), STAGES_W = WANTED_W < 12 ? WANTED_W : 12;
//! elif share
constexpr int WANTED_W = (TILE_K == 128 ? 6 : 8) * (64 / ROW), STAGES_W = WANTED_W < 12 ? WANTED_W : 12;
//! else
constexpr int WANTED_W = (TILE_K == 128 ? 4 : 6) * (64 / ROW), STAGES_W = WANTED_W < 12 ? WANTED_W : 12;
//! end
constexpr int FITTING_P = (ROOM - STAGES_W * SLOT_W * 2) / (SLOT_P * 2), STAGES_P = FITTING_P < 8 ? FITTING_P : 8;
static_assert(STAGES_P >= 2, "one slot of pixels must be filled while another is multiplied");
constexpr int SMEM_BYTES = 1024 + (STAGES_P * SLOT_P + STAGES_W * SLOT_W) * 2 + OUT_BYTES + 512;
//! if split_sums
constexpr int ROWS_K = (ROWS + TILE_K - 1) / TILE_K * TILE_K; // of whole tiles
constexpr int SLOTS = TAPS_D * TAPS_H * (WALK_TAPS_W / RUN) * CHUNKS; // of pixels, for a tile
//! end
// Steps of a sum between two additions into fp32 registers: 32 terms, or 64 of long sums, whose rounding matters more.
//! if transposed
constexpr int SUMMED = C_EACH * TAPS_D * TAPS_H * TAPS_W / (STRIDE_D * STRIDE_H * STRIDE_W); // terms of a result
//! else
constexpr int SUMMED = C_EACH * TAPS_D * TAPS_H * TAPS_W; // terms of a result
//! end
constexpr int TOGETHER = (ROW == 32 ? 2 : 1) * (SUMMED >= 512 ? 2 : 1);
