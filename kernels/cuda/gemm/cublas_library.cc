#include "kernels/cuda/gemm/cublas_library.h"

#include <dlfcn.h>

#include "lib/base/shared_library.h"

namespace gxp {
namespace {

constexpr const char* kFile = "libcublasLt.so.13";

CublasLibrary load() {
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(ErrorKind::kUnavailable,
         "load cuBLASLt: {}; install CUDA 13's libcublas, or name its folder in LD_LIBRARY_PATH",
         ::dlerror());
  }
  CublasLibrary c{};
  const auto find = [&](const char* name, auto& function) {
    find_function(library, "cuBLASLt", kFile, name, function);
  };
  find("cublasLtCreate", c.create);
  find("cublasLtDestroy", c.destroy);
  find("cublasLtGetVersion", c.version);
  find("cublasLtGetStatusString", c.status_string);
  find("cublasLtMatmulDescCreate", c.matmul_desc_create);
  find("cublasLtMatmulDescDestroy", c.matmul_desc_destroy);
  find("cublasLtMatmulDescSetAttribute", c.matmul_desc_set);
  find("cublasLtMatrixLayoutCreate", c.layout_create);
  find("cublasLtMatrixLayoutDestroy", c.layout_destroy);
  find("cublasLtMatmulPreferenceCreate", c.preference_create);
  find("cublasLtMatmulPreferenceDestroy", c.preference_destroy);
  find("cublasLtMatmulPreferenceSetAttribute", c.preference_set);
  find("cublasLtMatmulAlgoGetHeuristic", c.heuristic);
  find("cublasLtMatmul", c.matmul);
  return c;
}

}  // namespace

const CublasLibrary& cublas_library() {
  static const CublasLibrary library = load();
  return library;
}

}  // namespace gxp
