/* fake_cublas.c - a library that launches, so that a record can name it. */
void fake_launch(const char *function, const char *kernel);
int cublas_launches(void);

int cublas_launches(void)
{
    fake_launch("cuMemAlloc_v2", "no launch");
    fake_launch("cuLaunchKernelEx", "sm80_xmma_gemm_f32");
    return 1; /* not a tail call: this frame must be on the stack */
}
