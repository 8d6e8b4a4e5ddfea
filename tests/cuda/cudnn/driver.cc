// A CUDA driver without a GPU, as far as cuDNN needs one to prepare kernels: it takes machine code
// and never runs it. Found as libcuda.so.1 by the test next to it alone.

namespace {

constexpr int kSuccess = 0;
constexpr int kNoDevice = 100;
char something;

}  // namespace

extern "C" {

int cuInit(unsigned /*flags*/) { return kNoDevice; }
int cuLibraryLoadData(void** library) {
  *library = &something;
  return kSuccess;
}
int cuLibraryGetKernel(void** kernel) {
  *kernel = &something;
  return kSuccess;
}
int cuLibraryUnload(void* /*library*/) { return kSuccess; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = 0;
  return kSuccess;
}

// Looked up, and not called.
#define GXP_NOT_HERE(name) \
  int name() { return kNoDevice; }
GXP_NOT_HERE(cuGetErrorName)
GXP_NOT_HERE(cuGetErrorString)
GXP_NOT_HERE(cuCtxGetCurrent)
GXP_NOT_HERE(cuCtxGetLimit)
GXP_NOT_HERE(cuCtxPopCurrent)
GXP_NOT_HERE(cuCtxPushCurrent)
GXP_NOT_HERE(cuStreamGetCtx)
GXP_NOT_HERE(cuLinkCreate)
GXP_NOT_HERE(cuLinkAddData)
GXP_NOT_HERE(cuLinkComplete)
GXP_NOT_HERE(cuLinkDestroy)
GXP_NOT_HERE(cuLaunchKernel)
GXP_NOT_HERE(cuLaunchKernelEx)
GXP_NOT_HERE(cuLaunchCooperativeKernel)
GXP_NOT_HERE(cuDeviceGet)
GXP_NOT_HERE(cuLibraryLoadFromFile)
GXP_NOT_HERE(cuKernelSetAttribute)
GXP_NOT_HERE(cuKernelGetAttribute)
GXP_NOT_HERE(cuOccupancyMaxPotentialClusterSize)
#undef GXP_NOT_HERE

}  // extern "C"
