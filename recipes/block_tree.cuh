// block_tree.cuh - reduce over a block through shared memory. Included by the row recipes.
    __shared__ Acc parts[THREADS]; // of this stage alone
    parts[threadIdx.x] = acc;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            parts[threadIdx.x].merge(parts[threadIdx.x + half]);
        __syncthreads();
    }
    return parts[0];
