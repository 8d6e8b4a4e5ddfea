#include "kernels/cuda/cudnn/cudnn_library.h"

#include "lib/base/shared_library.h"

namespace gxp {
namespace {

constexpr const char* kFile = "libcudnn.so.9";
// The first for CUDA 13.
constexpr size_t kOldest = 91200;

CudnnFunctions load_functions() {
  const SharedLibrary library("cuDNN", kFile);
  CudnnFunctions c{};
  library.find("cudnnGetVersion", c.version);
  library.find("cudnnGetErrorString", c.error_string);
  library.find("cudnnGetLastErrorString", c.last_error_string);
  library.find("cudnnCreate", c.create);
  library.find("cudnnDestroy", c.destroy);
  library.find("cudnnSetStream", c.set_stream);
  library.find("cudnnBackendCreateDescriptor", c.create_object);
  library.find("cudnnBackendDestroyDescriptor", c.destroy_object);
  library.find("cudnnBackendSetAttribute", c.set);
  library.find("cudnnBackendGetAttribute", c.get);
  library.find("cudnnBackendFinalize", c.finalize);
  library.find("cudnnBackendExecute", c.execute);
  return c;
}

CudnnLibrary load() {
  try {
    const CudnnFunctions functions = load_functions();
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
