#include "kernels/cuda/cudnn_library.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "lib/base/dtype.h"
#include "tests/cuda/emulation/cudnn.h"
#include "tests/cuda/emulation/streams.h"

namespace gxp {

struct CudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

using emulation::cudnn_behaviour;
using Attribute = CudnnAttribute;
using Dims = std::array<int64_t, 4>;

constexpr CudnnStatus kBadParameter = 2000;
constexpr CudnnStatus kExecutionFailed = 5000;

std::atomic<int> runs{0};

size_t size_of(CudnnType type) {
  switch (type) {
    case CudnnType::kBoolean:
    case CudnnType::kChar:
      return 1;
    case CudnnType::kInt64:
    case CudnnType::kHandle:
    case CudnnType::kPointer:
    case CudnnType::kObject:
      return 8;
    default:
      return 4;
  }
}

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

template <class Use>
void for_each_index(const Dims& dims, const Use& use) {
  Dims at{};
  for (at[0] = 0; at[0] < dims[0]; ++at[0])
    for (at[1] = 0; at[1] < dims[1]; ++at[1])
      for (at[2] = 0; at[2] < dims[2]; ++at[2])
        for (at[3] = 0; at[3] < dims[3]; ++at[3]) use(at);
}

float rounded(CudnnData type, float value) {
  if (type == CudnnData::kBF16) return float(BFloat16(value));
  if (type == CudnnData::kF16) return float(Float16(value));
  return value;
}

// What the tensors of a graph hold while it is computed.
class Contents {
 public:
  Contents(std::map<int64_t, void*> memory, std::map<int64_t, float> scalars)
      : memory_(std::move(memory)), scalars_(std::move(scalars)) {}

  float read(const EmulatedTensor& tensor, size_t offset) {
    if (tensor.is_value) return scalars_.at(tensor.id);
    if (tensor.is_virtual) return between_.at(tensor.id).at(offset);
    const void* const data = memory_.at(tensor.id);
    if (tensor.type == CudnnData::kBF16) return float(static_cast<const BFloat16*>(data)[offset]);
    if (tensor.type == CudnnData::kF16) return float(static_cast<const Float16*>(data)[offset]);
    return static_cast<const float*>(data)[offset];
  }
  void write(const EmulatedTensor& tensor, size_t offset, float value) {
    if (tensor.is_virtual) {
      std::vector<float>& array = between_[tensor.id];
      if (array.empty()) array.resize(tensor.extent(), std::nanf(""));
      array.at(offset) = rounded(tensor.type, value);
      return;
    }
    void* const data = memory_.at(tensor.id);
    if (tensor.type == CudnnData::kBF16)
      static_cast<BFloat16*>(data)[offset] = BFloat16(value);
    else if (tensor.type == CudnnData::kF16)
      static_cast<Float16*>(data)[offset] = Float16(value);
    else
      static_cast<float*>(data)[offset] = value;
  }

 private:
  std::map<int64_t, void*> memory_;
  std::map<int64_t, float> scalars_;
  std::map<int64_t, std::vector<float>> between_;
};

float combine(CudnnPointwise mode, float x, float b, float t) {
  switch (mode) {
    case CudnnPointwise::kAdd:
      return x + b;
    case CudnnPointwise::kMultiply:
      return x * b;
    case CudnnPointwise::kDivide:
      return x / b;
    case CudnnPointwise::kSubtract:
      return x - b;
    case CudnnPointwise::kExp:
      return std::exp(x);
    case CudnnPointwise::kLog:
      return std::log(x);
    case CudnnPointwise::kAtLeast:
      return x >= b ? 1.0f : 0.0f;
    default:  // kSelect; an index is no function of values
      return t != 0 ? x : b;
  }
}

struct EmulatedOperation {
  explicit EmulatedOperation(const Object& object) : type(object.type) {
    const auto tensor = [&](Attribute attribute) {
      return EmulatedTensor(object.object(attribute));
    };
    if (type == CudnnObject::kMatmulOperation) {
      x.emplace(tensor(Attribute::kMatmulA));
      b.emplace(tensor(Attribute::kMatmulB));
      out.emplace(tensor(Attribute::kMatmulC));
    } else if (type == CudnnObject::kReductionOperation) {
      x.emplace(tensor(Attribute::kReductionX));
      out.emplace(tensor(Attribute::kReductionY));
      reduction =
          object.object(Attribute::kReductionWhat).one<CudnnReduction>(Attribute::kReductionMode);
    } else if (type == CudnnObject::kReshapeOperation) {
      x.emplace(tensor(Attribute::kReshapeX));
      out.emplace(tensor(Attribute::kReshapeY));
    } else {
      const Object& what = object.object(Attribute::kPointwiseWhat);
      mode = what.one<CudnnPointwise>(Attribute::kPointwiseMode);
      if (what.has(Attribute::kPointwiseAxis))
        axis = size_t(what.one<int64_t>(Attribute::kPointwiseAxis));
      x.emplace(tensor(Attribute::kPointwiseX));
      out.emplace(tensor(Attribute::kPointwiseY));
      if (object.has(Attribute::kPointwiseB)) b.emplace(tensor(Attribute::kPointwiseB));
      if (object.has(Attribute::kPointwiseT)) t.emplace(tensor(Attribute::kPointwiseT));
    }
  }

  void run(Contents& contents) const {
    if (type == CudnnObject::kMatmulOperation) return multiply(contents);
    if (type == CudnnObject::kReductionOperation) return reduce(contents);
    if (type == CudnnObject::kReshapeOperation) return reshape(contents);
    const auto value = [&](const std::optional<EmulatedTensor>& tensor, const Dims& at) {
      return tensor ? contents.read(*tensor, tensor->offset(at, out->dims)) : 0.0f;
    };
    for_each_index(out->dims, [&](const Dims& at) {
      const float result = mode == CudnnPointwise::kIndex
                               ? float(at[axis])
                               : combine(mode, value(x, at), value(b, at), value(t, at));
      contents.write(*out, out->offset(at, out->dims), result);
    });
  }

  void multiply(Contents& contents) const {
    for_each_index(out->dims, [&](const Dims& at) {
      float sum = 0;
      for (int64_t k = 0; k < x->dims[3]; ++k) {
        const Dims of_x = {out->dims[0], out->dims[1], x->dims[2], x->dims[3]};
        const Dims of_b = {out->dims[0], out->dims[1], b->dims[2], b->dims[3]};
        sum += contents.read(*x, x->offset({at[0], at[1], at[2], k}, of_x)) *
               contents.read(*b, b->offset({at[0], at[1], k, at[3]}, of_b));
      }
      contents.write(*out, out->offset(at, out->dims), sum);
    });
  }

  void reduce(Contents& contents) const {
    const bool is_max = reduction == CudnnReduction::kMax;
    std::map<size_t, float> results;
    for_each_index(x->dims, [&](const Dims& at) {
      const float value = contents.read(*x, x->offset(at, x->dims));
      const auto [found, is_new] = results.try_emplace(out->offset(at, x->dims), value);
      if (!is_new) found->second = is_max ? std::max(found->second, value) : found->second + value;
    });
    for (const auto& [offset, value] : results) contents.write(*out, offset, value);
  }

  // The same memory, seen with other strides.
  void reshape(Contents& contents) const {
    for_each_index(out->dims, [&](const Dims& at) {
      const size_t offset = out->offset(at, out->dims);
      contents.write(*out, offset, contents.read(*x, offset));
    });
  }

  CudnnObject type;
  std::optional<EmulatedTensor> x, b, t, out;
  CudnnPointwise mode{};
  CudnnReduction reduction{};
  size_t axis = 0;
};

std::vector<EmulatedOperation> operations_of(const Object& graph) {
  std::vector<EmulatedOperation> operations;
  for (const Object* operation : graph.all<const Object*>(Attribute::kGraphOperations))
    operations.emplace_back(*operation);
  return operations;
}

// As cuDNN 9.19 on an H100: a matrix of 16-bit gradients of scores, and gradients of each query's
// head where heads are grouped.
int64_t workspace_of(const std::vector<EmulatedOperation>& operations) {
  const auto products = std::count_if(operations.begin(), operations.end(), [](const auto& each) {
    return each.type == CudnnObject::kMatmulOperation;
  });
  if (products < 5) return 256;  // forward
  int64_t bytes = 256 + int64_t(cudnn_behaviour().extra_workspace);
  bool has_scores = false;
  for (const EmulatedOperation& each : operations) {
    if (each.type != CudnnObject::kMatmulOperation || !each.out->is_virtual) continue;
    const Dims& d = each.out->dims;
    const int64_t rounded = (d[2] + 63) / 64 * 64;
    const bool is_scores = each.out->type == CudnnData::kF32;
    if (!is_scores) bytes += 2 * d[0] * d[1] * d[2] * d[3];
    if (is_scores && !std::exchange(has_scores, true)) bytes += 2 * d[0] * d[1] * rounded * rounded;
  }
  return bytes;
}

CudnnStatus get_plan_workspace(const Object& plan, int64_t* bytes) {
  const Object& graph = plan.object(Attribute::kPlanConfig).object(Attribute::kHeuristicsGraph);
  *bytes = workspace_of(operations_of(graph));
  return kCudnnSuccess;
}

CudnnStatus set(void* object, Attribute attribute, CudnnType type, int64_t count,
                const void* values) {
  const auto* const first = static_cast<const std::byte*>(values);
  if (values == nullptr) return kBadParameter;
  static_cast<Object*>(object)->values[attribute] = {first, first + size_t(count) * size_of(type)};
  return kCudnnSuccess;
}

CudnnStatus get(void* object, Attribute attribute, CudnnType /*type*/, int64_t room, int64_t* count,
                void* values) {
  const Object& from = *static_cast<Object*>(object);
  *count = 1;
  if (room < 1) return kBadParameter;
  switch (attribute) {
    case Attribute::kHeuristicsResults: {
      if (cudnn_behaviour().refuses) *count = 0;
      Object* config = nullptr;
      std::memcpy(&config, values, sizeof config);
      config->values = from.values;
      return kCudnnSuccess;
    }
    case Attribute::kConfigEngine:
      return kCudnnSuccess;
    case Attribute::kEngineNotes: {
      const CudnnNote note = CudnnNote::kNotDeterministic;
      *count = cudnn_behaviour().is_ordered ? 0 : 1;
      std::memcpy(values, &note, size_t(*count) * sizeof note);
      return kCudnnSuccess;
    }
    case Attribute::kPlanWorkspace:
      return get_plan_workspace(from, static_cast<int64_t*>(values));
    default:
      return kBadParameter;
  }
}

// What a graph needs of its variant pack; of values, what they are now.
CudnnStatus execute(CudnnContext* context, void* plan_object, void* pack_object) {
  const Object& pack = *static_cast<Object*>(pack_object);
  const auto ids = pack.all<int64_t>(Attribute::kPackIds);
  const auto pointers = pack.all<void*>(Attribute::kPackPointers);
  auto* const workspace = pack.one<std::byte*>(Attribute::kPackWorkspace);
  std::map<int64_t, void*> memory;
  for (size_t i = 0; i < ids.size(); ++i) memory[ids[i]] = pointers[i];
  const Object& plan = *static_cast<Object*>(plan_object);
  const Object& graph = plan.object(Attribute::kPlanConfig).object(Attribute::kHeuristicsGraph);
  const std::vector<EmulatedOperation> operations = operations_of(graph);
  std::map<int64_t, float> scalars;
  for (const EmulatedOperation& operation : operations)
    for (const auto& tensor : {operation.x, operation.b, operation.t, operation.out}) {
      if (!tensor || tensor->is_virtual) continue;
      void* const data = memory[tensor->id];
      if (data == nullptr) return kBadParameter;
      if (tensor->is_value)
        scalars[tensor->id] = *static_cast<const float*>(data);
      else if (reinterpret_cast<uintptr_t>(data) % (tensor->type == CudnnData::kF32 ? 4 : 16) != 0)
        return kBadParameter;
    }
  const size_t bytes = size_t(workspace_of(operations));
  ++runs;
  const cudaError_t queued = emulation::enqueue(context->stream, [=] {
    std::memset(workspace, 0xff, bytes);
    Contents contents(memory, scalars);
    for (const EmulatedOperation& operation : operations) operation.run(contents);
  });
  return queued == cudaSuccess ? kCudnnSuccess : kExecutionFailed;
}

const CudnnFunctions kFunctions = {
    .version = [] { return size_t{91900}; },
    .error_string =
        [](CudnnStatus status) {
          return status == kCudnnSuccess ? "success" : "an error of the emulated cuDNN";
        },
    .last_error_string = [](char* text,
                            size_t room) { std::memset(text, 0, std::min<size_t>(room, 1)); },
    .create =
        [](CudnnContext** context) {
          if (cudnn_behaviour().fails_to_start) return kBadParameter;
          *context = new CudnnContext;
          return kCudnnSuccess;
        },
    .destroy =
        [](CudnnContext* context) {
          delete context;
          return kCudnnSuccess;
        },
    .set_stream =
        [](CudnnContext* context, void* stream) {
          context->stream = static_cast<cudaStream_t>(stream);
          return kCudnnSuccess;
        },
    .create_object =
        [](CudnnObject type, void** object) {
          *object = new Object{type};
          return kCudnnSuccess;
        },
    .destroy_object =
        [](void* object) {
          delete static_cast<Object*>(object);
          return kCudnnSuccess;
        },
    .set = set,
    .get = get,
    .finalize = [](void*) { return kCudnnSuccess; },
    .execute = execute};

}  // namespace

namespace emulation {

CudnnBehaviour& cudnn_behaviour() {
  static CudnnBehaviour behaviour;
  return behaviour;
}

int cudnn_runs() { return runs; }

}  // namespace emulation

const CudnnLibrary& cudnn_library() {
  static const CudnnLibrary there = {{}, kFunctions};
  static const CudnnLibrary missing = {{false, "load cuDNN: libcudnn.so.9: no such file"}, {}};
  return cudnn_behaviour().is_missing ? missing : there;
}

}  // namespace gxp
