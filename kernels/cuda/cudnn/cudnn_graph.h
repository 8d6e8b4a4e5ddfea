// A graph of cuDNN's operations on tensors of four dimensions, and the plan that computes it.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/cudnn/cudnn_abi.h"
#include "kernels/cudnn_workspace.h"
#include "lib/base/error.h"

namespace gxp {

// The target of a plan: a GPU, by a cuDNN handle, or the properties of a GPU that need not be
// present.
struct CudnnTarget {
  CudnnContext* handle = nullptr;
  void* properties = nullptr;  // a CudnnObject::kDeviceProperties
};

// cuDNN's objects, made one by one. The first call that cuDNN refuses is remembered; after it
// nothing is made.
class CudnnObjects {
 public:
  explicit CudnnObjects(const CudnnFunctions& functions) : functions_(functions) {}

  struct Value {
    CudnnAttribute attribute;
    CudnnType type;
    int64_t count;
    const void* values;
  };
  // Creates an object with these attributes and finalizes it; null after an error. Owned by this.
  void* make(CudnnObject type, std::span<const Value> values);
  // Made but not finalized, for cuDNN to fill in.
  void* make_empty(CudnnObject type);
  // Values of an attribute, up to `room` of them; how many there are.
  int64_t get(void* object, CudnnAttribute attribute, CudnnType type, int64_t room, void* values);

  // "matmul: CUDNN_STATUS_NOT_SUPPORTED: ..."; "" if nothing was refused.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  // Clears the last error and returns its text.
  std::string take_refusal() { return std::exchange(refusal_, {}); }
  [[nodiscard]] const CudnnFunctions& functions() const { return functions_; }

 private:
  bool accepts(CudnnStatus status);

  const CudnnFunctions& functions_;
  std::vector<std::unique_ptr<void, CudnnStatus (*)(void*)>> objects_;
  std::string refusal_;
};

using CudnnDims = std::array<int64_t, 4>;

class CudnnGraph {
 public:
  struct Tensor {
    void* object;
    CudnnDims dims, strides;
  };
  // Where a non-virtual tensor lies while the graph runs: in GPU memory, or in host memory if it is
  // a scalar.
  struct TensorBinding {
    int64_t id;
    const void* data;
  };

  CudnnGraph(const CudnnFunctions& functions, const CudnnTarget& target)
      : objects_(functions), target_(target) {}

  // A tensor in memory, which begins at a multiple of 16 bytes; ids are from 1 to 99.
  Tensor tensor(int64_t id, CudnnData type, const CudnnDims& dims, const CudnnDims& strides);
  // A float in the host's memory.
  Tensor scalar(int64_t id);
  // Exists within the graph only.
  Tensor between(CudnnData type, const CudnnDims& dims);

  // The result is f32 unless `out` says otherwise; dimensions of one element repeat.
  Tensor pointwise(CudnnPointwise mode, const Tensor& x, const Tensor& b);
  Tensor pointwise(CudnnPointwise mode, const Tensor& x);
  void pointwise(CudnnPointwise mode, const Tensor& x, const Tensor& b, const Tensor& out);
  // out = x, of its type.
  void copy(const Tensor& x, const Tensor& out);
  // The index along `axis` of each element of x, i32.
  Tensor index_like(const Tensor& x, int64_t axis);
  // a >= b.
  Tensor at_least(const Tensor& a, const Tensor& b);
  // condition ? x : otherwise.
  Tensor select(const Tensor& condition, const Tensor& x, const Tensor& otherwise);
  // out = a b, over the last two dimensions; if b has fewer heads than a, each serves a group of
  // a's heads.
  void matmul(const Tensor& a, const Tensor& b, const Tensor& out);
  // Reduces the dimensions in which `out` is smaller than x.
  void reduce(CudnnReduction mode, const Tensor& x, const Tensor& out);
  // The last two dimensions exchanged, of another type.
  Tensor transposed(const Tensor& x, CudnnData type);

  // Plans the graph: cuDNN's first choice that has such an order of sums, can be made and takes no
  // more than `most` bytes of workspace. Says why there is none.
  Support plan(size_t most, SumOrder order);
  [[nodiscard]] size_t workspace_bytes() const { return workspace_; }
  // Queues it on the handle's stream. kDevice: cuDNN fails.
  void run(std::span<const TensorBinding> bindings, void* workspace);

 private:
  Tensor describe(int64_t id, CudnnData type, const CudnnDims& dims, const CudnnDims& strides,
                  std::optional<CudnnAttribute> kind);
  void add_pointwise(CudnnPointwise mode, CudnnData precision,
                     std::initializer_list<CudnnObjects::Value> others,
                     std::optional<int64_t> axis = {});
  void pointwise_of_one(CudnnPointwise mode, const Tensor& x, const Tensor& out);
  void add(CudnnObject type, std::span<const CudnnObjects::Value> values);
  void* make_graph();
  std::vector<void*> choices(void* graph);
  bool is_deterministic(void* config);
  bool take(void* config, size_t most, SumOrder order, std::string& why_not);

  CudnnObjects objects_;
  CudnnTarget target_;
  std::vector<void*> operations_;
  int64_t next_id_ = 100;  // of tensors between
  void* plan_ = nullptr;
  size_t workspace_ = 0;
};

}  // namespace gxp
