#include "kernels/cuda/cublas_library.h"

#include <dlfcn.h>

#include <string>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr const char* kFile = "libcublasLt.so.13";

template <class Function>
void find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr)
    fail(ErrorKind::kUnavailable, "load cuBLASLt from {}: it has no {}", kFile, name);
}

CublasLibrary load() {
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(ErrorKind::kUnavailable,
         "load cuBLASLt: {}; install CUDA 13's libcublas, or name its folder in LD_LIBRARY_PATH",
         ::dlerror());
  }
  CublasLibrary c{};
  find(library, "cublasLtCreate", c.create);
  find(library, "cublasLtDestroy", c.destroy);
  find(library, "cublasLtGetVersion", c.version);
  find(library, "cublasLtGetStatusString", c.status_string);
  find(library, "cublasLtMatmulDescCreate", c.matmul_desc_create);
  find(library, "cublasLtMatmulDescDestroy", c.matmul_desc_destroy);
  find(library, "cublasLtMatmulDescSetAttribute", c.matmul_desc_set);
  find(library, "cublasLtMatrixLayoutCreate", c.layout_create);
  find(library, "cublasLtMatrixLayoutDestroy", c.layout_destroy);
  find(library, "cublasLtMatmulPreferenceCreate", c.preference_create);
  find(library, "cublasLtMatmulPreferenceDestroy", c.preference_destroy);
  find(library, "cublasLtMatmulPreferenceSetAttribute", c.preference_set);
  find(library, "cublasLtMatmulAlgoGetHeuristic", c.heuristic);
  find(library, "cublasLtMatmul", c.matmul);
  return c;
}

}  // namespace

const CublasLibrary& cublas_library() {
  static const CublasLibrary library = load();
  return library;
}

}  // namespace gxp
