// What gxp calls of CUDA's driver, with NVIDIA's names and meanings, for the emulated GPU
// (cuda_runtime_api.h): memory that processes map by a file descriptor, which is an anonymous file
// here. As the driver's, it can be read and written only after cuMemSetAccess(), and lives as long
// as a handle or a mapping of it.
#pragma once

#include <cstddef>

using CUdevice = int;
struct CUuuid {
  char bytes[16];
};
using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;

enum CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
};

enum CUdevice_attribute {
  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
  CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
  CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
};
enum CUmemAllocationType { CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum CUmemAllocationHandleType { CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1 };
enum CUmemRangeHandleType { CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1 };
enum CUmemLocationType { CU_MEM_LOCATION_TYPE_DEVICE = 1 };
enum CUmemAccess_flags { CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 };
enum CUmemAllocationGranularity_flags { CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1 };

struct CUmemLocation {
  CUmemLocationType type;
  int id;
};
struct CUmemAllocationProp {
  CUmemAllocationType type;
  CUmemAllocationHandleType requestedHandleTypes;
  CUmemLocation location;
  struct {
    unsigned char gpuDirectRDMACapable;
  } allocFlags;
};
struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
};

// From now on cuMemCreate() returns it for memory that is to be shared; CUDA_SUCCESS: makes it.
void set_emulated_sharing(CUresult result);

CUresult cuGetErrorString(CUresult error, const char** text);
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device);
CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option);
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemAddressReserve(CUdeviceptr* at, size_t size, size_t alignment, CUdeviceptr address,
                             unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr at, size_t size);
CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr at, size_t size);
CUresult cuMemSetAccess(CUdeviceptr at, size_t size, const CUmemAccessDesc* access, size_t count);
CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type);
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr at, size_t size,
                                       CUmemRangeHandleType type, unsigned long long flags);
