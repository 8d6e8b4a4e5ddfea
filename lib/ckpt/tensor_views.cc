#include "lib/ckpt/tensor_views.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "lib/base/dtype.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

// Sixteen elements of four bytes fill a cache line, so that a line is written once.
constexpr uint64_t kStrips = 16;

// A part of a transposed matrix: `count` elements from `begin` on, in rows of `columns`.
struct TransposedPart {
  uint64_t begin, count, columns;
  [[nodiscard]] uint64_t first_row() const { return begin / columns; }
  [[nodiscard]] uint64_t row_count() const {
    return (begin + count - 1) / columns - first_row() + 1;
  }
};

// Puts `strips`, each the rows' elements of one column from `column` on, into their places.
template <class Word>
void scatter(const std::vector<std::byte>& strips, const TransposedPart& part, uint64_t column,
             Memory out) {
  const uint64_t rows = part.row_count();
  const uint64_t columns = std::min(kStrips, part.columns - column);
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t place = (part.first_row() + row) * part.columns + column - part.begin;
    for (uint64_t i = 0; i < columns; ++i) {
      // The first and the last row may lie in the part with an end only; what comes before the
      // part has wrapped around to a large number.
      if (place + i >= part.count) continue;
      std::memcpy(out.data + (place + i) * sizeof(Word),
                  strips.data() + (i * rows + row) * sizeof(Word), sizeof(Word));
    }
  }
}

void scatter_elements(size_t element, const std::vector<std::byte>& strips,
                      const TransposedPart& part, uint64_t column, Memory out) {
  switch (element) {
    case 1:
      return scatter<uint8_t>(strips, part, column, out);
    case 2:
      return scatter<uint16_t>(strips, part, column, out);
    case 4:
      return scatter<uint32_t>(strips, part, column, out);
    default:
      return scatter<uint64_t>(strips, part, column, out);
  }
}

void read_transposed(const NamedTensor& matrix, uint64_t begin, Memory out) {
  const size_t element = size_of(matrix.info.dtype);
  const uint64_t source_columns = matrix.info.shape[1];
  const TransposedPart part{begin, out.bytes / element, matrix.info.shape[0]};
  if (part.count == 0) return;
  const uint64_t strip_bytes = part.row_count() * element;
  std::vector<std::byte> strips(std::min(kStrips, part.columns) * strip_bytes);
  for (uint64_t column = 0; column < part.columns; column += kStrips) {
    for (uint64_t i = 0; i < std::min(kStrips, part.columns - column); ++i)
      matrix.read((column + i) * source_columns + part.first_row(),
                  memory_of(strips).slice(i * strip_bytes, strip_bytes));
    scatter_elements(element, strips, part, column, out);
  }
}

uint32_t widen(StorageDType from, uint16_t bits) {
  if (from == StorageDType::kBF16) return uint32_t{bits} << 16;
  Float16 half;
  half.bits = bits;
  return std::bit_cast<uint32_t>(float(half));
}

// Of a word that widen() may have made; of others, something.
uint16_t narrow(StorageDType to, uint32_t word) {
  if (to == StorageDType::kBF16) return uint16_t(word >> 16);
  const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;  // Float16 would not keep its mantissa
  if (is_nan) return uint16_t((word >> 16 & 0x8000u) | 0x7c00u | (word >> 13 & 0x3ffu));
  return Float16(std::bit_cast<float>(word)).bits;
}

}  // namespace

NamedTensor transposed(NamedTensor matrix) {
  GXP_ASSERT(matrix.info.shape.size() == 2);
  TensorInfo info = matrix.info;
  std::swap(info.shape[0], info.shape[1]);
  return {std::move(info), [matrix = std::move(matrix)](uint64_t begin, Memory out) {
            read_transposed(matrix, begin, out);
          }};
}

NamedTensor with_rows(NamedTensor tensor, std::function<uint64_t(uint64_t)> source_row) {
  GXP_ASSERT(!tensor.info.shape.empty());
  TensorInfo info = tensor.info;
  const auto read = [tensor = std::move(tensor), source_row = std::move(source_row)](uint64_t begin,
                                                                                     Memory out) {
    const size_t element = size_of(tensor.info.dtype);
    const uint64_t count = out.bytes / element;
    const uint64_t columns =
        tensor.info.shape[0] == 0 ? 1 : tensor.info.count() / tensor.info.shape[0];
    for (uint64_t done = 0, part = 0; done < count; done += part) {
      const uint64_t column = (begin + done) % columns;
      part = std::min(columns - column, count - done);
      tensor.read(source_row((begin + done) / columns) * columns + column,
                  out.slice(done * element, part * element));
    }
  };
  return {std::move(info), read};
}

NamedTensor with_rotary_rows(NamedTensor tensor, uint64_t head_size, RotaryRows to) {
  const uint64_t half = head_size / 2;
  return with_rows(std::move(tensor), [=](uint64_t row) {
    const uint64_t channel = row % head_size;
    return row - channel +
           (to == RotaryRows::kPairs ? channel % 2 * half + channel / 2
                                     : channel % half * 2 + channel / half);
  });
}

NamedTensor with_head_rows(NamedTensor tensor, const HeadParts& sizes, HeadRows to) {
  return with_rows(std::move(tensor), [=](uint64_t row) {
    // Both orders are tables of blocks of head_size rows; what is outer in one is inner in the other.
    const uint64_t inner = to == HeadRows::kByPart ? sizes.heads : sizes.parts;
    const uint64_t outer = to == HeadRows::kByPart ? sizes.parts : sizes.heads;
    const uint64_t block = row / sizes.head_size;
    return (block % inner * outer + block / inner) * sizes.head_size + row % sizes.head_size;
  });
}

NamedTensor plus(NamedTensor tensor, float number) {
  TensorInfo info = tensor.info;
  GXP_ASSERT(info.dtype == StorageDType::kF32);
  return {std::move(info), [tensor = std::move(tensor), number](uint64_t begin, Memory out) {
            tensor.read(begin, out);
            for (size_t at = 0; at < out.bytes; at += sizeof(float)) {
              float value;
              std::memcpy(&value, out.data + at, sizeof(value));
              value += number;
              std::memcpy(out.data + at, &value, sizeof(value));
            }
          }};
}

NamedTensor widened(NamedTensor tensor) {
  TensorInfo info = tensor.info;
  info.dtype = StorageDType::kF32;
  return {std::move(info), [tensor = std::move(tensor)](uint64_t begin, Memory out) {
            std::vector<uint16_t> narrow_words(out.bytes / sizeof(uint32_t));
            tensor.read(begin, memory_of(narrow_words));
            for (size_t i = 0; i < narrow_words.size(); ++i) {
              const uint32_t word = widen(tensor.info.dtype, narrow_words[i]);
              std::memcpy(out.data + i * sizeof(word), &word, sizeof(word));
            }
          }};
}

NamedTensor narrowed(NamedTensor tensor, StorageDType dtype) {
  TensorInfo info = tensor.info;
  info.dtype = dtype;
  return {std::move(info), [tensor = std::move(tensor), dtype](uint64_t begin, Memory out) {
            std::vector<uint32_t> words(out.bytes / sizeof(uint16_t));
            tensor.read(begin, memory_of(words));
            for (size_t i = 0; i < words.size(); ++i) {
              const uint16_t bits = narrow(dtype, words[i]);
              if (widen(dtype, bits) != words[i])
                fail(ErrorKind::kCorrupt,
                     "read tensor '{}': element {} is not representable in {}, the type it was "
                     "widened from",
                     tensor.info.name, begin + i, to_string(dtype));
              std::memcpy(out.data + i * sizeof(bits), &bits, sizeof(bits));
            }
          }};
}

}  // namespace gxp
