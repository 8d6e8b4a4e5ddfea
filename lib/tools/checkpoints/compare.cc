#include "lib/tools/checkpoints/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>

#include "lib/base/dtype.h"

namespace gxp {
namespace {

constexpr std::array<std::string_view, 6> kLikenesses = {
    "equal",         "values differ",     "dtypes differ",
    "shapes differ", "only in the first", "only in the second"};

constexpr uint64_t kComparedElements = uint64_t{1} << 19;

template <class Element>
void decode_values(const std::vector<std::byte>& bytes, std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Element element;
    std::memcpy(&element, bytes.data() + i * sizeof(Element), sizeof(Element));
    if constexpr (std::is_arithmetic_v<Element>) {
      values[i] = double(element);
    } else {
      values[i] = double(float(element));
    }
  }
}

using DecodeValues = void (*)(const std::vector<std::byte>&, std::vector<double>&);

// nullptr for types that gxp cannot calculate with.
DecodeValues decoder_of(StorageDType dtype) {
  switch (dtype) {
    case StorageDType::kF64:
      return decode_values<double>;
    case StorageDType::kF32:
      return decode_values<float>;
    case StorageDType::kF16:
      return decode_values<Float16>;
    case StorageDType::kBF16:
      return decode_values<BFloat16>;
    case StorageDType::kU64:
      return decode_values<uint64_t>;
    case StorageDType::kI64:
      return decode_values<int64_t>;
    case StorageDType::kU32:
      return decode_values<uint32_t>;
    case StorageDType::kI32:
      return decode_values<int32_t>;
    case StorageDType::kU16:
      return decode_values<uint16_t>;
    case StorageDType::kI16:
      return decode_values<int16_t>;
    case StorageDType::kI8:
      return decode_values<int8_t>;
    case StorageDType::kU8:
    case StorageDType::kBool:
      return decode_values<uint8_t>;
    default:
      return nullptr;
  }
}

// One side of a comparison: the elements at hand, as bytes and as values.
struct ComparedSide {
  explicit ComparedSide(const NamedTensor& source)
      : tensor(source),
        decode(decoder_of(source.info.dtype)),
        element(size_of(source.info.dtype)) {}

  void read(uint64_t begin, uint64_t count) {
    bytes.resize(count * element);
    tensor.read(begin, memory_of(bytes));
  }
  void calculate() {
    values.resize(bytes.size() / element);
    decode(bytes, values);
  }

  const NamedTensor& tensor;
  DecodeValues decode;
  size_t element;
  std::vector<std::byte> bytes = {};
  std::vector<double> values = {};
};

class TensorComparer {
 public:
  TensorComparer(const NamedTensor& a, const NamedTensor& b, TensorComparison& result)
      : a_(a), b_(b), result_(result), same_type_(a.info.dtype == b.info.dtype) {}

  void run() {
    const bool calculable = a_.decode != nullptr && b_.decode != nullptr;
    if (calculable) result_.distance.emplace();
    const uint64_t count = a_.tensor.info.count();
    if (!same_type_ && !calculable) return;
    for (uint64_t begin = 0; begin < count; begin += kComparedElements)
      compare_block(begin, std::min(count - begin, kComparedElements));
    if (calculable && count > 0) result_.distance->mean_absolute = sum_ / double(count);
  }

 private:
  void compare_block(uint64_t begin, uint64_t count) {
    a_.read(begin, count);
    b_.read(begin, count);
    if (same_type_ && a_.bytes == b_.bytes) return;
    if (result_.distance) {
      a_.calculate();
      b_.calculate();
    }
    for (uint64_t i = 0; i < count; ++i) {
      if (!differs(i)) continue;
      if (result_.distance) measure(a_.values[i], b_.values[i]);
      ++result_.differing;
      if (!result_.first) result_.first = begin + i;
    }
  }

  [[nodiscard]] bool differs(uint64_t i) const {
    if (same_type_)
      return std::memcmp(&a_.bytes[i * a_.element], &b_.bytes[i * a_.element], a_.element) != 0;
    const double a = a_.values[i], b = b_.values[i];
    return a != b && !(std::isnan(a) && std::isnan(b));
  }

  void measure(double a, double b) {
    Distance& distance = *result_.distance;
    if (!result_.first) std::tie(distance.first_a, distance.first_b) = std::pair(a, b);
    const double absolute = std::fabs(a - b);
    const double larger = std::max(std::fabs(a), std::fabs(b));
    sum_ += absolute;
    raise(distance.max_absolute, absolute);
    if (absolute != 0) raise(distance.max_relative, std::isinf(larger) ? 1 : absolute / larger);
  }

  // A NaN stays.
  static void raise(double& maximum, double value) {
    if (std::isnan(value) || value > maximum) maximum = value;
  }

  ComparedSide a_, b_;
  TensorComparison& result_;
  bool same_type_;
  double sum_ = 0;
};

TensorComparison compare_pair(const NamedTensor& a, const NamedTensor& b) {
  TensorComparison result{a.info, b.info};
  if (a.info.shape != b.info.shape) {
    result.likeness = Likeness::kShape;
    return result;
  }
  TensorComparer(a, b, result).run();
  if (result.differing > 0) result.likeness = Likeness::kValues;
  if (a.info.dtype != b.info.dtype) result.likeness = Likeness::kDType;
  return result;
}

}  // namespace

std::string_view to_string(Likeness likeness) { return kLikenesses[size_t(likeness)]; }

std::vector<TensorComparison> compare_tensors(const NamedTensors& a, const NamedTensors& b) {
  std::map<std::pair<std::string_view, Role>, const NamedTensor*> others;
  for (const NamedTensor& tensor : b.tensors)
    others[{tensor.info.name, tensor.info.role}] = &tensor;
  std::vector<TensorComparison> results;
  for (const NamedTensor& tensor : a.tensors) {
    const auto other = others.extract({tensor.info.name, tensor.info.role});
    results.push_back(other.empty()
                          ? TensorComparison{tensor.info, tensor.info, Likeness::kOnlyFirst}
                          : compare_pair(tensor, *other.mapped()));
  }
  for (const NamedTensor& tensor : b.tensors) {
    if (others.contains({tensor.info.name, tensor.info.role}))
      results.push_back({tensor.info, tensor.info, Likeness::kOnlySecond});
  }
  return results;
}

}  // namespace gxp
