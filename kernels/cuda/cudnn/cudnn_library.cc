#include "kernels/cuda/cudnn/cudnn_library.h"

#include <dlfcn.h>

#include "lib/base/shared_library.h"

namespace gxp {
namespace {

constexpr const char* kFile = "libcudnn.so.9";
// The first for CUDA 13.
constexpr size_t kOldest = 91200;

CudnnFunctions functions_of(void* library) {
  CudnnFunctions c{};
  const auto find = [&](const char* name, auto& function) {
    find_function(library, "cuDNN", kFile, name, function);
  };
  find("cudnnGetVersion", c.version);
  find("cudnnGetErrorString", c.error_string);
  find("cudnnGetLastErrorString", c.last_error_string);
  find("cudnnCreate", c.create);
  find("cudnnDestroy", c.destroy);
  find("cudnnSetStream", c.set_stream);
  find("cudnnBackendCreateDescriptor", c.create_object);
  find("cudnnBackendDestroyDescriptor", c.destroy_object);
  find("cudnnBackendSetAttribute", c.set);
  find("cudnnBackendGetAttribute", c.get);
  find("cudnnBackendFinalize", c.finalize);
  find("cudnnBackendExecute", c.execute);
  return c;
}

CudnnLibrary load() {
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {{false, fmt::format("load cuDNN: {}", ::dlerror())}, {}};
  try {
    const CudnnFunctions functions = functions_of(library);
    if (functions.version() < kOldest)
      return {{false,
               fmt::format("load cuDNN: {} is version {}, gxp needs {}", kFile,
                           cudnn_version_name(functions.version()), cudnn_version_name(kOldest))},
              {}};
    return {{}, functions};
  } catch (const Error& error) {
    return {{false, error.what()}, {}};
  }
}

}  // namespace

const CudnnLibrary& cudnn_library() {
  static const CudnnLibrary library = load();
  return library;
}

}  // namespace gxp
