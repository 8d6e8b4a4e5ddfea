#include "kernels/cuda/gemm/cublas_library.h"

#include "lib/base/shared_library.h"

namespace gxp {
namespace {

CublasLibrary load() {
  const SharedLibrary library("cuBLASLt", "libcublasLt.so.13",
                              "install CUDA 13's libcublas, or name its folder in LD_LIBRARY_PATH");
  CublasLibrary c{};
  library.find("cublasLtCreate", c.create);
  library.find("cublasLtDestroy", c.destroy);
  library.find("cublasLtGetVersion", c.version);
  library.find("cublasLtGetStatusString", c.status_string);
  library.find("cublasLtMatmulDescCreate", c.matmul_desc_create);
  library.find("cublasLtMatmulDescDestroy", c.matmul_desc_destroy);
  library.find("cublasLtMatmulDescSetAttribute", c.matmul_desc_set);
  library.find("cublasLtMatrixLayoutCreate", c.layout_create);
  library.find("cublasLtMatrixLayoutDestroy", c.layout_destroy);
  library.find("cublasLtMatmulPreferenceCreate", c.preference_create);
  library.find("cublasLtMatmulPreferenceDestroy", c.preference_destroy);
  library.find("cublasLtMatmulPreferenceSetAttribute", c.preference_set);
  library.find("cublasLtMatmulAlgoGetHeuristic", c.heuristic);
  library.find("cublasLtMatmul", c.matmul);
  return c;
}

}  // namespace

const CublasLibrary& cublas_library() {
  static const CublasLibrary library = load();
  return library;
}

}  // namespace gxp
