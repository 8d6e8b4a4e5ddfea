#include "lib/ckpt/cast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "lib/base/dtype.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr uint64_t kCastElements = 8192;

// A double as the float from which rounding to a shorter type gives what rounding the double gives:
// cut off, and odd if that is inexact. Rounding to nearest twice would not (it may meet a tie that
// is none). Source: Boldo & Melquiond, "Emulation of a FMA and correctly rounded sums", 2008.
float round_to_odd(double value) {
  const auto nearest = float(value);
  if (std::isnan(value) || double(nearest) == value) return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(double(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

template <class From>
float to_float(From value, bool is_last) {
  if constexpr (std::is_same_v<From, double>) {
    return is_last ? float(value) : round_to_odd(value);
  } else {
    return float(value);
  }
}

// Converts an element after the other; returns how many finite ones became infinite.
template <class From, class To>
uint64_t cast_elements(const std::byte* from, std::byte* to, size_t count) {
  uint64_t overflowed = 0;
  for (size_t i = 0; i < count; ++i) {
    From source;
    std::memcpy(&source, from + i * sizeof(From), sizeof(From));
    const auto result = To(to_float(source, std::is_same_v<To, float>));
    std::memcpy(to + i * sizeof(To), &result, sizeof(To));
    bool finite = false;
    if constexpr (std::is_same_v<From, double>) {
      finite = std::isfinite(source);
    } else {
      finite = std::isfinite(float(source));
    }
    overflowed += uint64_t(finite && std::isinf(float(result)));
  }
  return overflowed;
}

using CastElements = uint64_t (*)(const std::byte*, std::byte*, size_t);

template <class From>
CastElements cast_from(StorageDType to) {
  if (to == StorageDType::kF32) return cast_elements<From, float>;
  if (to == StorageDType::kF16) return cast_elements<From, Float16>;
  if (to == StorageDType::kBF16) return cast_elements<From, BFloat16>;
  return nullptr;
}

// nullptr where nothing is to be done.
CastElements find_cast(StorageDType from, StorageDType to) {
  if (from == to) return nullptr;
  switch (from) {
    case StorageDType::kF64:
      return cast_from<double>(to);
    case StorageDType::kF32:
      return cast_from<float>(to);
    case StorageDType::kF16:
      return cast_from<Float16>(to);
    case StorageDType::kBF16:
      return cast_from<BFloat16>(to);
    default:
      return nullptr;
  }
}

// Reads a tensor in another type than it has.
class CastReader {
 public:
  CastReader(NamedTensor source, StorageDType to, std::shared_ptr<OverflowCount> overflowed)
      : source_(std::move(source)),
        cast_(find_cast(source_.info.dtype, to)),
        from_bytes_(size_of(source_.info.dtype)),
        to_bytes_(size_of(to)),
        overflowed_(std::move(overflowed)) {}

  void operator()(uint64_t begin, Memory out) const {
    const uint64_t end = begin + out.bytes / to_bytes_;
    std::vector<std::byte> buffer(std::min(end - begin, kCastElements) * from_bytes_);
    for (uint64_t at = begin; at < end; at += kCastElements) {
      const uint64_t count = std::min(end - at, kCastElements);
      source_.read(at, memory_of(buffer).slice(0, count * from_bytes_));
      count_once(at, count, cast_(buffer.data(), out.data + (at - begin) * to_bytes_, count));
    }
  }

 private:
  // `found` of the elements [begin, begin + count) have overflowed.
  void count_once(uint64_t begin, uint64_t count, uint64_t found) const {
    uint64_t expected = begin;
    if (counted_->compare_exchange_strong(expected, begin + count)) *overflowed_ += found;
  }

  NamedTensor source_;
  CastElements cast_;
  size_t from_bytes_, to_bytes_;
  std::shared_ptr<OverflowCount> overflowed_;
  // The elements below it are counted. Owners: the copies of this reader.
  std::shared_ptr<std::atomic<uint64_t>> counted_ = std::make_shared<std::atomic<uint64_t>>(0);
};

}  // namespace

NamedTensors cast_weights(NamedTensors tensors, StorageDType dtype,
                          const std::shared_ptr<OverflowCount>& overflowed) {
  GXP_ASSERT(cast_from<double>(dtype) != nullptr);
  for (NamedTensor& tensor : tensors.tensors) {
    if (tensor.info.role != Role::kWeight || find_cast(tensor.info.dtype, dtype) == nullptr)
      continue;
    TensorInfo info = tensor.info;
    info.dtype = dtype;
    tensor = {std::move(info), CastReader(std::move(tensor), dtype, overflowed)};
  }
  return tensors;
}

}  // namespace gxp
