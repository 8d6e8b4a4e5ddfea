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
void need(CudaDriver& driver, Function*& function, const char* name) {
  if (!find(function, name) && driver.support)
    driver.support = {false, fmt::format("the NVIDIA driver has no {}; a newer one does", name)};
}

CudaDriver load() {
  CudaDriver driver;
  need(driver, driver.error_string, "cuGetErrorString");
  need(driver, driver.attribute, "cuDeviceGetAttribute");
  need(driver, driver.granularity, "cuMemGetAllocationGranularity");
  need(driver, driver.create, "cuMemCreate");
  need(driver, driver.release, "cuMemRelease");
  need(driver, driver.reserve_addresses, "cuMemAddressReserve");
  need(driver, driver.free_addresses, "cuMemAddressFree");
  need(driver, driver.map, "cuMemMap");
  need(driver, driver.unmap, "cuMemUnmap");
  need(driver, driver.set_access, "cuMemSetAccess");
  need(driver, driver.export_handle, "cuMemExportToShareableHandle");
  need(driver, driver.import_handle, "cuMemImportFromShareableHandle");
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
