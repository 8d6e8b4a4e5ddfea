// Graphs of the emulated cuDNN: what its objects were told, and the operations that these make,
// computed one by one in f32; what stays within a graph is rounded to its type.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cuda/cudnn/cudnn_library.h"

namespace gxp::emulation {

using Attribute = CudnnAttribute;
using Dims = std::array<int64_t, 4>;

struct Object {
  CudnnObject type;
  std::map<Attribute, std::vector<std::byte>> values = {};

  [[nodiscard]] bool has(Attribute attribute) const { return values.contains(attribute); }
  template <class T>
  [[nodiscard]] std::vector<T> all(Attribute attribute) const {
    const std::vector<std::byte>& bytes = values.at(attribute);
    std::vector<T> result(bytes.size() / sizeof(T));
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
  template <class T>
  [[nodiscard]] T one(Attribute attribute) const {
    return all<T>(attribute).at(0);
  }
  [[nodiscard]] const Object& object(Attribute attribute) const {
    return *one<const Object*>(attribute);
  }
};

struct EmulatedTensor {
  explicit EmulatedTensor(const Object& object)
      : id(object.one<int64_t>(Attribute::kTensorId)),
        type(object.one<CudnnData>(Attribute::kTensorType)),
        is_virtual(object.has(Attribute::kTensorIsVirtual)),
        is_value(object.has(Attribute::kTensorIsValue)) {
    std::copy_n(object.all<int64_t>(Attribute::kTensorDims).begin(), 4, dims.begin());
    std::copy_n(object.all<int64_t>(Attribute::kTensorStrides).begin(), 4, strides.begin());
  }
  // Where an element lies; dimensions of one element repeat, and fewer heads serve several each.
  [[nodiscard]] size_t offset(const Dims& at, const Dims& of) const {
    int64_t result = 0;
    for (size_t i = 0; i < 4; ++i) result += at[i] * dims[i] / of[i] * strides[i];
    return size_t(result);
  }
  [[nodiscard]] size_t extent() const {
    int64_t last = 0;
    for (size_t i = 0; i < 4; ++i) last += (dims[i] - 1) * strides[i];
    return size_t(last) + 1;
  }

  int64_t id;
  CudnnData type;
  bool is_virtual, is_value;
  Dims dims{}, strides{};
};

// What the tensors of a graph hold while it is computed.
class Contents {
 public:
  Contents(std::map<int64_t, void*> memory, std::map<int64_t, float> scalars)
      : memory_(std::move(memory)), scalars_(std::move(scalars)) {}

  float read(const EmulatedTensor& tensor, size_t offset);
  void write(const EmulatedTensor& tensor, size_t offset, float value);

 private:
  std::map<int64_t, void*> memory_;
  std::map<int64_t, float> scalars_;
  std::map<int64_t, std::vector<float>> between_;
};

struct EmulatedOperation {
  explicit EmulatedOperation(const Object& object);
  void run(Contents& contents) const;

  CudnnObject type;
  std::optional<EmulatedTensor> x, b, t, out;

 private:
  void multiply(Contents& contents) const;
  void reduce(Contents& contents) const;
  void reshape(Contents& contents) const;

  CudnnPointwise mode_{};
  CudnnReduction reduction_{};
  size_t axis_ = 0;
};

std::vector<EmulatedOperation> operations_of(const Object& graph);

}  // namespace gxp::emulation
