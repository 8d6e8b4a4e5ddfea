// The functions of NVIDIA's driver that its run time does not offer, found through the run time: so
// gxp is not linked with libcuda.so.1, and starts where there is none.
#pragma once

#include <cuda.h>

#include <string_view>

#include "lib/base/error.h"

namespace gxp {

struct CudaDriver {
  decltype(&cuGetErrorString) error_string = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemAddressReserve) reserve_addresses = nullptr;
  decltype(&cuMemAddressFree) free_addresses = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemExportToShareableHandle) export_handle = nullptr;
  decltype(&cuMemImportFromShareableHandle) import_handle = nullptr;
  Support support;  // whether all of them were found; if not, which was not
  // `support` does not depend on these; null before CUDA 11.4 and 11.7.
  decltype(&cuDeviceGetUuid) uuid = nullptr;
  decltype(&cuMemGetHandleForAddressRange) export_range = nullptr;
};

// Looked for once. Needs a driver.
const CudaDriver& cuda_driver();

// Throws kDevice with the driver's own text, "ACT: out of memory (2)".
void check_driver(CUresult result, std::string_view act);

}  // namespace gxp
