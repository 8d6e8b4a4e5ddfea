#include "lib/device/cuda_driver.h"

#include <cuda_runtime_api.h>

namespace gxp {
namespace {

// The oldest CUDA whose version of each function is the one declared in cuda.h.
constexpr unsigned kSince = 12000;

template <class Function>
bool find(Function*& function, const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult state = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &found, kSince, cudaEnableDefault, &state);
  function = reinterpret_cast<Function*>(found);
  if (result == cudaSuccess && state == cudaDriverEntryPointSuccess && found != nullptr)
    return true;
  cudaGetLastError();  // an expected answer
  function = nullptr;
  return false;
}

template <class Function>
void need(Support& support, Function*& function, const char* name) {
  if (!find(function, name) && support)
    support = {false, fmt::format("the NVIDIA driver has no {}; a newer one does", name)};
}

CudaDriver load() {
  CudaDriver driver;
  need(driver.support, driver.error_string, "cuGetErrorString");
  need(driver.support, driver.attribute, "cuDeviceGetAttribute");
  need(driver.support, driver.granularity, "cuMemGetAllocationGranularity");
  need(driver.support, driver.create, "cuMemCreate");
  need(driver.support, driver.release, "cuMemRelease");
  need(driver.support, driver.reserve_addresses, "cuMemAddressReserve");
  need(driver.support, driver.free_addresses, "cuMemAddressFree");
  need(driver.support, driver.map, "cuMemMap");
  need(driver.support, driver.unmap, "cuMemUnmap");
  need(driver.support, driver.set_access, "cuMemSetAccess");
  need(driver.support, driver.export_handle, "cuMemExportToShareableHandle");
  need(driver.support, driver.import_handle, "cuMemImportFromShareableHandle");
  find(driver.uuid, "cuDeviceGetUuid");
  find(driver.export_range, "cuMemGetHandleForAddressRange");
  return driver;
}

}  // namespace

const CudaDriver& cuda_driver() {
  static const CudaDriver driver = load();
  return driver;
}

void check_driver(CUresult result, std::string_view act) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  cuda_driver().error_string(result, &text);
  fail(ErrorKind::kDevice, "{}: {} ({})", act, text != nullptr ? text : "an unknown error",
       int(result));
}

}  // namespace gxp
