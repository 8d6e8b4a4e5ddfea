#include "kernels/cuda/cudnn/cudnn_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace gxp {
namespace {

using Attribute = CudnnAttribute;
using Value = CudnnObjects::Value;

// The type by which cuDNN knows a C++ type.
template <class T>
constexpr CudnnType type_of();
template <>
constexpr CudnnType type_of<CudnnContext*>() {
  return CudnnType::kHandle;
}
template <>
constexpr CudnnType type_of<CudnnData>() {
  return CudnnType::kData;
}
template <>
constexpr CudnnType type_of<bool>() {
  return CudnnType::kBoolean;
}
template <>
constexpr CudnnType type_of<int64_t>() {
  return CudnnType::kInt64;
}
template <>
constexpr CudnnType type_of<CudnnHeuristics>() {
  return CudnnType::kHeuristics;
}
template <>
constexpr CudnnType type_of<CudnnPointwise>() {
  return CudnnType::kPointwise;
}
template <>
constexpr CudnnType type_of<CudnnReduction>() {
  return CudnnType::kReduction;
}
template <>
constexpr CudnnType type_of<void*>() {
  return CudnnType::kObject;
}

// An attribute whose values outlive it.
template <class T>
Value value(Attribute attribute, const T& one) {
  return {attribute, type_of<T>(), 1, &one};
}
Value values(Attribute attribute, const CudnnDims& dims) {
  return {attribute, CudnnType::kInt64, 4, dims.data()};
}
Value values(Attribute attribute, const std::vector<void*>& objects) {
  return {attribute, CudnnType::kObject, int64_t(objects.size()), objects.data()};
}

std::array<Value, 1> only(const Value& value) { return {value}; }

CudnnDims packed(const CudnnDims& dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}

constexpr int64_t kAlignment = 16;  // of tensors in memory, in bytes
constexpr int64_t kMostChoices = 32;

}  // namespace

bool CudnnObjects::accepts(CudnnStatus status) {
  if (status == kCudnnSuccess) return true;
  char text[512] = "";
  functions_.last_error_string(text, sizeof text);
  refusal_ = functions_.error_string(status);
  if (text[0] != '\0') refusal_ += fmt::format(": {}", text);
  return false;
}

void* CudnnObjects::make_empty(CudnnObject type) {
  void* object = nullptr;
  if (!refusal_.empty() || !accepts(functions_.create_object(type, &object))) return nullptr;
  objects_.emplace_back(object, functions_.destroy_object);
  return object;
}

void* CudnnObjects::make(CudnnObject type, std::span<const Value> values) {
  void* const object = make_empty(type);
  if (object == nullptr) return nullptr;
  for (const Value& v : values)
    if (!accepts(functions_.set(object, v.attribute, v.type, v.count, v.values))) return nullptr;
  return accepts(functions_.finalize(object)) ? object : nullptr;
}

int64_t CudnnObjects::get(void* object, CudnnAttribute attribute, CudnnType type, int64_t room,
                          void* values) {
  int64_t count = 0;
  if (!refusal_.empty() || !accepts(functions_.get(object, attribute, type, room, &count, values)))
    return 0;
  return std::min(count, room);
}

CudnnGraph::Tensor CudnnGraph::describe(int64_t id, CudnnData type, const CudnnDims& dims,
                                        const CudnnDims& strides, std::optional<Attribute> kind) {
  const bool yes = true;
  std::vector<Value> all = {value(Attribute::kTensorId, id), value(Attribute::kTensorType, type),
                            values(Attribute::kTensorDims, dims),
                            values(Attribute::kTensorStrides, strides),
                            value(Attribute::kTensorAlignment, kAlignment)};
  if (kind) all.push_back(value(*kind, yes));
  return {objects_.make(CudnnObject::kTensor, all), dims, strides};
}

CudnnGraph::Tensor CudnnGraph::tensor(int64_t id, CudnnData type, const CudnnDims& dims,
                                      const CudnnDims& strides) {
  return describe(id, type, dims, strides, {});
}

CudnnGraph::Tensor CudnnGraph::scalar(int64_t id) {
  return describe(id, CudnnData::kF32, {1, 1, 1, 1}, {1, 1, 1, 1}, Attribute::kTensorIsValue);
}

CudnnGraph::Tensor CudnnGraph::between(CudnnData type, const CudnnDims& dims) {
  return describe(next_id_++, type, dims, packed(dims), Attribute::kTensorIsVirtual);
}

void CudnnGraph::add(CudnnObject type, std::span<const Value> values) {
  operations_.push_back(objects_.make(type, values));
}

// The operation of `mode` in `precision`; `others` are its tensors.
void CudnnGraph::add_pointwise(CudnnPointwise mode, CudnnData precision,
                               std::initializer_list<Value> others, std::optional<int64_t> axis) {
  std::vector<Value> kind = {value(Attribute::kPointwiseMode, mode),
                             value(Attribute::kPointwisePrecision, precision)};
  if (axis) kind.push_back(value(Attribute::kPointwiseAxis, *axis));
  void* const what = objects_.make(CudnnObject::kPointwise, kind);
  std::vector<Value> all = others;
  all.push_back(value(Attribute::kPointwiseWhat, what));
  add(CudnnObject::kPointwiseOperation, all);
}

void CudnnGraph::pointwise_of_one(CudnnPointwise mode, const Tensor& x, const Tensor& out) {
  add_pointwise(
      mode, CudnnData::kF32,
      {value(Attribute::kPointwiseX, x.object), value(Attribute::kPointwiseY, out.object)});
}

CudnnGraph::Tensor CudnnGraph::pointwise(CudnnPointwise mode, const Tensor& x) {
  const Tensor out = between(CudnnData::kF32, x.dims);
  pointwise_of_one(mode, x, out);
  return out;
}

void CudnnGraph::copy(const Tensor& x, const Tensor& out) {
  pointwise_of_one(CudnnPointwise::kIdentity, x, out);
}

CudnnGraph::Tensor CudnnGraph::pointwise(CudnnPointwise mode, const Tensor& x, const Tensor& b) {
  const Tensor out = between(CudnnData::kF32, x.dims);
  pointwise(mode, x, b, out);
  return out;
}

void CudnnGraph::pointwise(CudnnPointwise mode, const Tensor& x, const Tensor& b,
                           const Tensor& out) {
  add_pointwise(mode, CudnnData::kF32,
                {value(Attribute::kPointwiseX, x.object), value(Attribute::kPointwiseB, b.object),
                 value(Attribute::kPointwiseY, out.object)});
}

CudnnGraph::Tensor CudnnGraph::index_like(const Tensor& x, int64_t axis) {
  const Tensor out = between(CudnnData::kI32, x.dims);
  add_pointwise(
      CudnnPointwise::kIndex, CudnnData::kI32,
      {value(Attribute::kPointwiseX, x.object), value(Attribute::kPointwiseY, out.object)}, axis);
  return out;
}

CudnnGraph::Tensor CudnnGraph::at_least(const Tensor& a, const Tensor& b) {
  const Tensor out = between(CudnnData::kBoolean, a.dims);
  add_pointwise(CudnnPointwise::kAtLeast, CudnnData::kBoolean,
                {value(Attribute::kPointwiseX, a.object), value(Attribute::kPointwiseB, b.object),
                 value(Attribute::kPointwiseY, out.object)});
  return out;
}

CudnnGraph::Tensor CudnnGraph::select(const Tensor& condition, const Tensor& x,
                                      const Tensor& otherwise) {
  const Tensor out = between(CudnnData::kF32, x.dims);
  add_pointwise(
      CudnnPointwise::kSelect, CudnnData::kF32,
      {value(Attribute::kPointwiseX, x.object), value(Attribute::kPointwiseB, otherwise.object),
       value(Attribute::kPointwiseT, condition.object), value(Attribute::kPointwiseY, out.object)});
  return out;
}

void CudnnGraph::matmul(const Tensor& a, const Tensor& b, const Tensor& out) {
  const CudnnData precision = CudnnData::kF32;
  void* const what =
      objects_.make(CudnnObject::kMatmul, only(value(Attribute::kMatmulPrecision, precision)));
  const auto all = {value(Attribute::kMatmulWhat, what), value(Attribute::kMatmulA, a.object),
                    value(Attribute::kMatmulB, b.object), value(Attribute::kMatmulC, out.object)};
  add(CudnnObject::kMatmulOperation, all);
}

void CudnnGraph::reduce(CudnnReduction mode, const Tensor& x, const Tensor& out) {
  const CudnnData precision = CudnnData::kF32;
  const auto kind = {value(Attribute::kReductionMode, mode),
                     value(Attribute::kReductionPrecision, precision)};
  void* const what = objects_.make(CudnnObject::kReduction, kind);
  const auto all = {value(Attribute::kReductionWhat, what), value(Attribute::kReductionX, x.object),
                    value(Attribute::kReductionY, out.object)};
  add(CudnnObject::kReductionOperation, all);
}

CudnnGraph::Tensor CudnnGraph::transposed(const Tensor& x, CudnnData type) {
  const CudnnDims dims = {x.dims[0], x.dims[1], x.dims[3], x.dims[2]};
  const CudnnDims strides = {x.strides[0], x.strides[1], x.strides[3], x.strides[2]};
  const Tensor out = describe(next_id_++, type, dims, strides, Attribute::kTensorIsVirtual);
  const auto all = {value(Attribute::kReshapeX, x.object), value(Attribute::kReshapeY, out.object)};
  add(CudnnObject::kReshapeOperation, all);
  return out;
}

void* CudnnGraph::make_graph() {
  std::vector<Value> all = {values(Attribute::kGraphOperations, operations_)};
  if (target_.handle != nullptr) all.push_back(value(Attribute::kGraphHandle, target_.handle));
  return objects_.make(CudnnObject::kGraph, all);
}

std::vector<void*> CudnnGraph::choices(void* graph) {
  const CudnnHeuristics mode = CudnnHeuristics::kModeA;
  std::vector<Value> all = {value(Attribute::kHeuristicsGraph, graph),
                            value(Attribute::kHeuristicsMode, mode)};
  if (target_.properties != nullptr)
    all.push_back(value(Attribute::kHeuristicsDevice, target_.properties));
  void* const heuristics = objects_.make(CudnnObject::kHeuristics, all);
  std::vector<void*> configs;
  for (int64_t i = 0; i < kMostChoices; ++i)
    configs.push_back(objects_.make_empty(CudnnObject::kEngineConfig));
  configs.resize(size_t(objects_.get(heuristics, Attribute::kHeuristicsResults, CudnnType::kObject,
                                     kMostChoices, configs.data())));
  return configs;
}

bool CudnnGraph::is_deterministic(void* config) {
  void* engine = objects_.make_empty(CudnnObject::kEngine);
  objects_.get(config, Attribute::kConfigEngine, CudnnType::kObject, 1, &engine);
  std::array<CudnnNote, 16> notes{};
  const int64_t count = objects_.get(engine, Attribute::kEngineNotes, CudnnType::kNote,
                                     int64_t(notes.size()), notes.data());
  return std::find(notes.begin(), notes.begin() + count, CudnnNote::kNotDeterministic) ==
         notes.begin() + count;
}

// Whether its plan can be made and fits.
bool CudnnGraph::take(void* config, size_t most, SumOrder order, std::string& why_not) {
  if (order == SumOrder::kFixed && !is_deterministic(config)) {
    why_not = "the order of its sums is not fixed";
    return false;
  }
  const Value target = target_.handle != nullptr
                           ? value(Attribute::kPlanHandle, target_.handle)
                           : value(Attribute::kPlanDevice, target_.properties);
  const auto all = {target, value(Attribute::kPlanConfig, config)};
  void* const plan = objects_.make(CudnnObject::kPlan, all);
  int64_t bytes = 0;
  objects_.get(plan, Attribute::kPlanWorkspace, CudnnType::kInt64, 1, &bytes);
  if (!objects_.refusal().empty()) {
    why_not = objects_.take_refusal();
    return false;
  }
  if (size_t(bytes) > most) {
    why_not = fmt::format("it takes {} bytes of workspace, of {}", bytes, most);
    return false;
  }
  plan_ = plan;
  workspace_ = size_t(bytes);
  return true;
}

Support CudnnGraph::plan(size_t most, SumOrder order) {
  const std::vector<void*> configs = choices(make_graph());
  if (!objects_.refusal().empty()) return {false, objects_.take_refusal()};
  std::string why_not = "it has no engine for it";
  for (void* const config : configs)
    if (take(config, most, order, why_not)) return {};
  return {false, why_not};
}

void CudnnGraph::run(std::span<const TensorBinding> bindings, void* workspace) {
  std::vector<int64_t> ids;
  std::vector<const void*> pointers;
  for (const TensorBinding& binding : bindings) {
    ids.push_back(binding.id);
    pointers.push_back(binding.data);
  }
  const auto count = int64_t(bindings.size());
  const auto all = {Value{Attribute::kPackIds, CudnnType::kInt64, count, ids.data()},
                    Value{Attribute::kPackPointers, CudnnType::kPointer, count, pointers.data()},
                    Value{Attribute::kPackWorkspace, CudnnType::kPointer, 1, &workspace}};
  CudnnObjects once(objects_.functions());
  void* const pack = once.make(CudnnObject::kVariantPack, all);
  if (pack == nullptr) fail(ErrorKind::kDevice, "hand tensors to cuDNN: {}", once.refusal());
  const CudnnStatus status = objects_.functions().execute(target_.handle, plan_, pack);
  if (status != kCudnnSuccess)
    fail(ErrorKind::kDevice, "compute on a GPU by cuDNN: {}",
         objects_.functions().error_string(status));
}

}  // namespace gxp
