#include "tests/cuda/emulation/cudnn_graph.h"

#include <cmath>

#include "lib/base/dtype.h"

namespace gxp::emulation {
namespace {

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
    case CudnnPointwise::kIdentity:
      return x;
    case CudnnPointwise::kAtLeast:
      return x >= b ? 1.0f : 0.0f;
    default:  // kSelect; an index is no function of values
      return t != 0 ? x : b;
  }
}

// The operand's matrix for that one of the result, [rows][columns].
std::vector<float> matrix_of(Contents& contents, const EmulatedTensor& operand,
                             const Dims& of_result, const Dims& at) {
  const int64_t rows = operand.dims[2], columns = operand.dims[3];
  const Dims dims = {of_result[0], of_result[1], rows, columns};
  std::vector<float> values;
  values.reserve(size_t(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      values.push_back(contents.read(operand, operand.offset({at[0], at[1], i, j}, dims)));
  return values;
}

}  // namespace

float Contents::read(const EmulatedTensor& tensor, size_t offset) {
  if (tensor.is_value) return scalars_.at(tensor.id);
  if (tensor.is_virtual) return between_.at(tensor.id).at(offset);
  const void* const data = memory_.at(tensor.id);
  if (tensor.type == CudnnData::kBF16) return float(static_cast<const BFloat16*>(data)[offset]);
  if (tensor.type == CudnnData::kF16) return float(static_cast<const Float16*>(data)[offset]);
  return static_cast<const float*>(data)[offset];
}

void Contents::write(const EmulatedTensor& tensor, size_t offset, float value) {
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

EmulatedOperation::EmulatedOperation(const Object& object) : type(object.type) {
  const auto tensor = [&](Attribute attribute) { return EmulatedTensor(object.object(attribute)); };
  if (type == CudnnObject::kMatmulOperation) {
    x.emplace(tensor(Attribute::kMatmulA));
    b.emplace(tensor(Attribute::kMatmulB));
    out.emplace(tensor(Attribute::kMatmulC));
  } else if (type == CudnnObject::kReductionOperation) {
    x.emplace(tensor(Attribute::kReductionX));
    out.emplace(tensor(Attribute::kReductionY));
    reduction_ =
        object.object(Attribute::kReductionWhat).one<CudnnReduction>(Attribute::kReductionMode);
  } else if (type == CudnnObject::kReshapeOperation) {
    x.emplace(tensor(Attribute::kReshapeX));
    out.emplace(tensor(Attribute::kReshapeY));
  } else {
    const Object& what = object.object(Attribute::kPointwiseWhat);
    mode_ = what.one<CudnnPointwise>(Attribute::kPointwiseMode);
    if (what.has(Attribute::kPointwiseAxis))
      axis_ = size_t(what.one<int64_t>(Attribute::kPointwiseAxis));
    x.emplace(tensor(Attribute::kPointwiseX));
    out.emplace(tensor(Attribute::kPointwiseY));
    if (object.has(Attribute::kPointwiseB)) b.emplace(tensor(Attribute::kPointwiseB));
    if (object.has(Attribute::kPointwiseT)) t.emplace(tensor(Attribute::kPointwiseT));
  }
}

void EmulatedOperation::run(Contents& contents) const {
  if (type == CudnnObject::kMatmulOperation) return multiply(contents);
  if (type == CudnnObject::kReductionOperation) return reduce(contents);
  if (type == CudnnObject::kReshapeOperation) return reshape(contents);
  const auto value = [&](const std::optional<EmulatedTensor>& tensor, const Dims& at) {
    return tensor ? contents.read(*tensor, tensor->offset(at, out->dims)) : 0.0f;
  };
  for_each_index(out->dims, [&](const Dims& at) {
    const float result = mode_ == CudnnPointwise::kIndex
                             ? float(at[axis_])
                             : combine(mode_, value(x, at), value(b, at), value(t, at));
    contents.write(*out, out->offset(at, out->dims), result);
  });
}

void EmulatedOperation::multiply(Contents& contents) const {
  const int64_t rows = out->dims[2], columns = out->dims[3], inner = x->dims[3];
  for_each_index({out->dims[0], out->dims[1], 1, 1}, [&](const Dims& at) {
    // Read once: looking up each value for each product takes seconds.
    const std::vector<float> left = matrix_of(contents, *x, out->dims, at);
    const std::vector<float> right = matrix_of(contents, *b, out->dims, at);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += left[size_t(i * inner + k)] * right[size_t(k * columns + j)];
        contents.write(*out, out->offset({at[0], at[1], i, j}, out->dims), sum);
      }
  });
}

void EmulatedOperation::reduce(Contents& contents) const {
  const bool is_max = reduction_ == CudnnReduction::kMax;
  std::map<size_t, float> results;
  for_each_index(x->dims, [&](const Dims& at) {
    const float value = contents.read(*x, x->offset(at, x->dims));
    const auto [found, is_new] = results.try_emplace(out->offset(at, x->dims), value);
    if (!is_new) found->second = is_max ? std::max(found->second, value) : found->second + value;
  });
  for (const auto& [offset, value] : results) contents.write(*out, offset, value);
}

// The same memory, seen with other strides.
void EmulatedOperation::reshape(Contents& contents) const {
  for_each_index(out->dims, [&](const Dims& at) {
    const size_t offset = out->offset(at, out->dims);
    contents.write(*out, offset, contents.read(*x, offset));
  });
}

std::vector<EmulatedOperation> operations_of(const Object& graph) {
  std::vector<EmulatedOperation> operations;
  for (const Object* operation : graph.all<const Object*>(Attribute::kGraphOperations))
    operations.emplace_back(*operation);
  return operations;
}

}  // namespace gxp::emulation
