#include "lib/device/cuda_driver.h"

#include <cuda_runtime_api.h>

namespace gxp {
namespace {

// The oldest CUDA whose version of each function is the one declared in cuda.h.
constexpr unsigned kSince = 12000;

template <class Function>
void find(CudaDriver& driver, Function*& function, const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult state = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &found, kSince, cudaEnableDefault, &state);
  function = reinterpret_cast<Function*>(found);
  if (result == cudaSuccess && state == cudaDriverEntryPointSuccess && found != nullptr) return;
  cudaGetLastError();  // an expected answer
  if (driver.support)
    driver.support = {false, fmt::format("the NVIDIA driver has no {}; a newer one does", name)};
}

CudaDriver load() {
  CudaDriver driver;
  find(driver, driver.error_string, "cuGetErrorString");
  find(driver, driver.attribute, "cuDeviceGetAttribute");
  find(driver, driver.granularity, "cuMemGetAllocationGranularity");
  find(driver, driver.create, "cuMemCreate");
  find(driver, driver.release, "cuMemRelease");
  find(driver, driver.reserve_addresses, "cuMemAddressReserve");
  find(driver, driver.free_addresses, "cuMemAddressFree");
  find(driver, driver.map, "cuMemMap");
  find(driver, driver.unmap, "cuMemUnmap");
  find(driver, driver.set_access, "cuMemSetAccess");
  find(driver, driver.export_handle, "cuMemExportToShareableHandle");
  find(driver, driver.import_handle, "cuMemImportFromShareableHandle");
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
