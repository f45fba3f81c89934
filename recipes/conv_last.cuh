// conv_last.cuh - tiles and rings where x and y lie channels last; a part of convolution.cu.
// A box of pixels is fetched from where it lies, BOX_W x BOX_H of BOX_N images. TMA fills what is outside of an image with
// zeros. Where taps share a box it has columns that only the last taps need; USE_W of its columns are results.
constexpr int BOX_W = $box_w, BOX_H = $box_h, BOX_N = $box_n, USE_W = $use_w;
constexpr int BOX = BOX_W * BOX_H * BOX_N, USED = USE_W * BOX_H * BOX_N; // pixels; results
constexpr int BOXES_W = (OUT_W + USE_W - 1) / USE_W, BOXES_H = (OUT_H + BOX_H - 1) / BOX_H; // of an image
constexpr int WIDE = $wide; // pixels of an instruction: up to the last result of a box
//! if few_rows
constexpr int TILE_K = 64, SIDE = 2;  // output channels; boxes, one of each warpgroup
//! else
constexpr int TILE_K = 128, SIDE = 1; // output channels, 64 of each warpgroup; boxes
//! end
//! if share
constexpr int RUN = WALK_TAPS_W; // taps that share a slot of pixels
//! else
constexpr int RUN = 1; // taps that share a slot of pixels
//! end
constexpr int COUNT = TAPS_D * TAPS_H * WALK_TAPS_W * CHUNKS; // steps of a sum
// Taps whose weights come together: a step of 32 channels is too short for a slot of its own.
constexpr int JOINED = ROW == 64 ? 1 : RUN % 4 == 0 ? 4 : RUN % 3 == 0 ? 3 : RUN % 2 == 0 ? 2 : 1;
constexpr int READ = (RUN - 1) * STEP_W + WIDE, ROWS_P = ((READ > BOX ? READ : BOX) + 15) / 16 * 16; // rows of a box's slot
constexpr int SLOT_P = SIDE * ROWS_P * ROW, SLOT_W = JOINED * TILE_K * ROW; // elements
// Results on their way out; of short sums twice, as stores take longer than products.
constexpr int OUT_ROWS = (USED + 7) / 8 * 8, OUTS = COUNT <= 2 ? 2 : 1;
constexpr bool NEAT = USED == WIDE && WIDE % 16 == 0; // every pixel is a result, and they go out 16 at a time
constexpr int LOST = NEAT ? 0 : 2 * 128 * 8, OUT_BYTES = 2 * OUTS * OUT_ROWS * 128 + LOST * 2; // elements of those that are none
constexpr int ROOM = 232448 - 1024 - 512 - OUT_BYTES;
// Weights of short sums stay in shared memory.
constexpr bool STAYS = COUNT / JOINED <= 4 && C_OUT <= TILE_K;
// Slots of pixels and weights: about as many steps of each.
constexpr int fitting_w(int slots_p)
{
    return (ROOM - slots_p * SLOT_P * 2) / (SLOT_W * 2);
}
constexpr int fitting_p()
{
    int slots = 2;
    while (slots < (COUNT <= 2 ? 4 : 8) && fitting_w(slots + 1) >= (STAYS ? COUNT / JOINED : 4))
        ++slots;
    return slots;
}
constexpr int STAGES_P = fitting_p(), FITTING_W = fitting_w(STAGES_P);
constexpr int STAGES_W = STAYS ? COUNT / JOINED : FITTING_W < 12 ? FITTING_W : 12;
static_assert(STAGES_W >= 2 || STAYS, "one slot must be filled while another is multiplied");
constexpr int SMEM_BYTES = 1024 + (STAGES_P * SLOT_P + STAGES_W * SLOT_W) * 2 + OUT_BYTES + 512;
