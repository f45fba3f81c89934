// attention_backward_sizes.cuh - sizes of the forms for sm_80. Included by the recipes of gradients.
//! if tensor
constexpr int WIDTH = (HEAD + 15) / 16 * 16, WIDTH_V = (HEAD_V + 15) / 16 * 16; // in shared memory: zeros behind the end
constexpr int PITCH = WIDTH + 8, PITCH_V = WIDTH_V + 8; // of a row: neighbours start in different banks
constexpr int TILE = 32; // rows of what is summed along
constexpr int SLOT = TILE * (PITCH + PITCH_V); // elements
constexpr int GRADIENT_BYTES = (64 * (PITCH + PITCH_V) + 2 * SLOT) * 2;
//! else
constexpr int WARPS = 4;
//! end
