# The sources of the CUDA backend: for nvcc and a GPU, and for the tests' emulation of one.
set(gxp_cuda_sources cuda_elementwise.cc cublas_products.cc cuda_gemm.cc gemm_cache.cc gemm_timing.cc cuda_ops.cc cuda_queue.cc cuda_updates.cc
    elementwise.cu not_yet.cc sums.cu updates.cu)
