// gemm_thin_store.cuh - finishes and stores one element. Included by the recipes of thin products.
//! if swapped
    int const m = r, n = h;
//! else
    int const m = h, n = r;
//! end
//! if epilogue
    mC(m, n) = $c_open${kernel}_finish(acc$finish)$c_close;
//! else
    mC(m, n) = ${c_open}acc$c_close;
//! end
