// conv_tiles.cuh - tiles and rings of the product on sm_90a; a part of convolution.cu.
//! if few_rows
constexpr int TILE_K = 64;  // output channels
constexpr int TILE_P = 512; // pixels, 256 of each warpgroup
//! else
constexpr int TILE_K = 128; // output channels, 64 of each warpgroup
constexpr int TILE_P = 256; // pixels
//! end
//! if share
constexpr int HALO = 32;    // pixels behind a tile
constexpr int RUN = WALK_TAPS_W; // taps that share a slot of pixels
//! else
constexpr int HALO = 0;     // pixels behind a tile
constexpr int RUN = 1;      // taps that share a slot of pixels
//! end
constexpr int PIECE = 128;  // pixels of one accumulator
constexpr int PIECES = 2;   // of a warpgroup
constexpr int SLOT_P = (TILE_P + HALO) * ROW, SLOT_W = TILE_K * ROW; // elements
constexpr int PITCH = 40;   // of a row of 32 results on its way out
constexpr int OUT_BYTES = 8 * 16 * PITCH * 4;
constexpr int ROOM = 232448 - 1024 - 512 - OUT_BYTES;
constexpr int WANTED_W = (HALO ? 6 : 4) * (64 / ROW) * (128 / TILE_K), STAGES_W = WANTED_W < 12 ? WANTED_W : 12;
constexpr int FITTING_P = (ROOM - STAGES_W * SLOT_W * 2) / (SLOT_P * 2), STAGES_P = FITTING_P < 8 ? FITTING_P : 8;
constexpr int SMEM_BYTES = 1024 + (STAGES_P * SLOT_P + STAGES_W * SLOT_W) * 2 + OUT_BYTES + 512;
constexpr int TOGETHER = PRODUCTS == 3 && ROW == 32 ? 2 : 1; // rows of a sum between two additions into fp32 registers
