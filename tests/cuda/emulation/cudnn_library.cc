#include "kernels/cuda/cudnn/cudnn_library.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "tests/cuda/emulation/cudnn.h"
#include "tests/cuda/emulation/cudnn_graph.h"
#include "tests/cuda/emulation/streams.h"

namespace gxp {

struct CudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

using emulation::Attribute;
using emulation::Contents;
using emulation::cudnn_behaviour;
using emulation::Dims;
using emulation::EmulatedOperation;
using emulation::Object;
using emulation::operations_of;

constexpr CudnnStatus kBadParameter = 2000;
constexpr CudnnStatus kExecutionFailed = 5000;

std::atomic<int> runs{0};
std::atomic<int> plans_made{0};

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

// As cuDNN 9.19 on an H100: a matrix of 16-bit gradients of scores, unless sums of f32 lie in
// memory, and gradients of each query's head where heads are grouped.
int64_t workspace_of(const std::vector<EmulatedOperation>& operations) {
  const auto products = std::count_if(operations.begin(), operations.end(), [](const auto& each) {
    return each.type == CudnnObject::kMatmulOperation;
  });
  if (products < 5) return 256;  // forward
  int64_t bytes = 256 + int64_t(cudnn_behaviour().extra_workspace);
  bool has_scores = std::ranges::any_of(operations, [](const auto& each) {
    return each.type == CudnnObject::kMatmulOperation && !each.out->is_virtual &&
           each.out->type == CudnnData::kF32;
  });
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
  ++plans_made;
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
  const bool is_slow = bytes >= cudnn_behaviour().slow_from;
  const cudaError_t queued = emulation::enqueue(context->stream, [=] {
    if (is_slow) emulation::spend(std::chrono::milliseconds(3));
    Contents contents(memory, scalars);
    for (const EmulatedOperation& operation : operations) {
      std::memset(workspace, 0xff, bytes);  // nothing else may lie there
      operation.run(contents);
    }
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
int cudnn_plans_made() { return plans_made; }

}  // namespace emulation

const CudnnLibrary& cudnn_library() {
  static const CudnnLibrary there = {{}, kFunctions};
  static const CudnnLibrary missing = {{false, "load cuDNN: libcudnn.so.9: no such file"}, {}};
  return cudnn_behaviour().is_missing ? missing : there;
}

}  // namespace gxp
