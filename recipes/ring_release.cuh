// ring_release.cuh - signals to a barrier of another block of the cluster. Included by the recipes for sm_90a.
__device__ inline void release(uint64_t &barrier, unsigned rank)
{
    asm volatile("{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n\t}" ::"r"(cast_smem_ptr_to_uint(&barrier)),
                 "r"(rank)
                 : "memory");
}
