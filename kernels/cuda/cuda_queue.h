// The stream on which one CudaOps queues its operations, and the memory that they share.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "kernels/cuda/array.h"
#include "kernels/cuda/gpu_stream.h"
#include "lib/base/deadline.h"
#include "lib/device/device.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// The stream and the device outlive it. One thread at a time, whose current GPU becomes the
// stream's.
class CudaQueue {
 public:
  CudaQueue(Stream& stream, Device& device);

  // Makes the stream's GPU current. With the GPU's size, which is asked for once: the sums of
  // columns have an order of their own for each number of multiprocessors.
  GpuStream stream() const;
  // "NVIDIA H100 80GB HBM3, ...": the device's description without its number.
  [[nodiscard]] std::string gpu_name() const;
  // Memory of the GPU for the kernels of one operation; its earlier content is lost. Aligned to
  // 256 bytes. Waits for the stream where it must grow.
  std::byte* scratch(size_t bytes);
  template <class T>
  T* scratch_of(size_t count) {
    return reinterpret_cast<T*>(scratch(count * sizeof(T)));
  }
  // Returns when all that was queued is done; the kernels' errors show here.
  void finish();
  // A value in the GPU's memory, when all that was queued is done. Throws kInternal if a kernel has
  // set the flag below.
  template <class T>
  T read(const T* value) {
    T result{};
    copy_to_host(&result, value, sizeof result);
    return result;
  }
  // In the GPU's memory, 0 at first: a kernel that is given an index outside of its table reads and
  // writes nothing there, and stores 1.
  int* outside_flag();
  // A copy of `host` in the GPU's memory, for operations queued from now on. Waits for older ones.
  Buffer upload(const std::vector<float>& host);

 private:
  void copy_to_host(void* host, const void* value, size_t bytes);

  Stream& stream_;
  Device& device_;
  GpuSize gpu_{};
  Buffer scratch_;
  Buffer outside_;
};

// The array of a tensor in a GPU's memory; that of an empty one (memory.data == nullptr) is null.
inline CudaArray array_of(const Tensor& tensor) {
  GXP_ASSERT(tensor.memory.data == nullptr || tensor.memory.space == MemorySpace::kCuda);
  return {tensor.memory.data, tensor.dtype};
}
inline ConstCudaArray array_of(const ConstTensor& tensor) {
  GXP_ASSERT(tensor.memory.data == nullptr || tensor.memory.space == MemorySpace::kCuda);
  return {tensor.memory.data, tensor.dtype};
}

// The elements of a tensor whose type and count are known: cuda_vector<float>(mean, rows).
template <class T, class AnyTensor>
auto* cuda_vector(const AnyTensor& tensor, size_t count) {
  GXP_ASSERT(sizeof(T) == size_of(tensor.dtype) && tensor.count() == count);
  GXP_ASSERT(count == 0 || tensor.memory.space == MemorySpace::kCuda);
  if constexpr (std::is_same_v<AnyTensor, Tensor>) {
    return reinterpret_cast<T*>(tensor.memory.data);
  } else {
    return reinterpret_cast<const T*>(tensor.memory.data);
  }
}
// The same, or null if the tensor is empty.
template <class T, class AnyTensor>
auto* cuda_vector_or_null(const AnyTensor& tensor, size_t count) {
  using Pointer = decltype(cuda_vector<T>(tensor, count));
  return tensor.memory.data == nullptr ? Pointer(nullptr) : cuda_vector<T>(tensor, count);
}

inline const int32_t* cuda_indices(const ConstTensor& tensor, size_t count) {
  GXP_ASSERT(tensor.dtype == DType::kI32);
  return cuda_vector<int32_t>(tensor, count);
}
// The same, or null if the tensor is empty.
inline const int32_t* cuda_indices_or_null(const ConstTensor& tensor, size_t count) {
  return tensor.memory.data == nullptr ? nullptr : cuda_indices(tensor, count);
}

}  // namespace gxp
