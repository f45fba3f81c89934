// ring_place.cuh - a place in a ring of slots. Included by the recipes for sm_90a that have several rings.
struct Place {
    int slot, turn;
    template <int STAGES>
    __device__ void next()
    {
        if (++slot == STAGES)
            slot = 0, turn ^= 1;
    }
};
