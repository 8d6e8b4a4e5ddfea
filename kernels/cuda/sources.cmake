# The sources of the CUDA backend: for nvcc and a GPU, and for the tests' emulation of one.
set(gxp_cuda_sources
  column_sums.cu
  cublas_products.cc
  cuda_elementwise.cc
  cuda_gemm.cc
  cuda_norms.cc
  cuda_ops.cc
  cuda_queue.cc
  cuda_updates.cc
  elementwise.cu
  gemm_cache.cc
  gemm_timing.cc
  norms.cu
  not_yet.cc
  sums.cu
  updates.cu)
