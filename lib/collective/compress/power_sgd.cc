#include "lib/collective/compress/power_sgd.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/base/hash.h"
#include "lib/collective/compress/float_tiles.h"

namespace gxp {
namespace {

constexpr size_t kLanes = 16;  // a constant trip count is what the compiler vectorises at -O2

// The order of the sum depends on the count alone.
float dot(const float* __restrict a, const float* __restrict b, size_t count) {
  float sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < count; ++i) sums[i % kLanes] += a[i] * b[i];
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

// y += factor * x
void add_multiple(float* __restrict y, const float* __restrict x, float factor, size_t count) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) y[i + lane] += factor * x[i + lane];
  }
  for (; i < count; ++i) y[i] += factor * x[i];
}

// A fixed stream of numbers in (-1, 1): splitmix64 (Steele, Lea & Flood, OOPSLA 2014).
float noise(uint64_t i) { return float(int64_t(mix64((i + 1) * 0x9e3779b97f4a7c15u))) * 0x1p-63f; }

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

std::span<float> floats_of(Memory memory) {
  return {reinterpret_cast<float*>(memory.data), memory.bytes / sizeof(float)};
}

double column_dot(std::span<const float> p, size_t columns, size_t a, size_t b) {
  double sum = 0;
  for (size_t row = 0; row < p.size(); row += columns) sum += double(p[row + a]) * p[row + b];
  return sum;
}

}  // namespace

void orthogonalise(std::span<float> p, size_t columns) {
  constexpr double kDependent = 1e-5;  // of the column's length: what rounding in f32 leaves
  for (size_t column = 0; column < columns; ++column) {
    const double before = std::sqrt(column_dot(p, columns, column, column));
    for (size_t earlier = 0; earlier < 2 * column; ++earlier) {
      const size_t other = earlier % column;
      const double along = column_dot(p, columns, column, other);
      for (size_t row = 0; row < p.size(); row += columns)
        p[row + column] = float(p[row + column] - along * p[row + other]);
    }
    const double length = std::sqrt(column_dot(p, columns, column, column));
    const double factor = length > kDependent * before ? 1 / length : 0;
    for (size_t row = 0; row < p.size(); row += columns)
      p[row + column] = float(p[row + column] * factor);
  }
}

PowerSgdAllReduce::PowerSgdAllReduce(const CompressionOptions& options, const BufferShape& shape,
                                     HostGroups& groups, Device& device)
    : comm_(*groups.all), count_(shape.count) {
  if (shape.dtype != DType::kF32) {
    fail(ErrorKind::kUnavailable, "power_sgd of {}: it takes f32; use a codec",
         to_string(shape.dtype));
  }
  add_matrices(shape, static_cast<size_t>(options.power_sgd_rank));
  const auto allocate = [&](Buffer& buffer, size_t count) {
    buffer = device.allocate(count * sizeof(float), MemoryKind::kCommunication);
    return floats_of(buffer.memory());
  };
  kept_ = allocate(kept_buffer_, count_);
  p_ = allocate(p_buffer_, p_count_ + rest_count_);
  q_ = allocate(q_buffer_, q_count_);
  for (const Matrix& matrix : matrices_) fill_q(matrix);
}

void PowerSgdAllReduce::add_matrices(const BufferShape& shape, size_t wanted_rank) {
  size_t end = 0;
  for (const MatrixPart& part : shape.matrices) {
    GXP_ASSERT(end <= part.begin && part.begin + part.rows * part.columns <= shape.count);
    const size_t rank = std::min({wanted_rank, part.rows, part.columns});
    if ((part.rows + part.columns) * rank >= part.rows * part.columns) continue;
    add_rest({end, part.begin - end});
    end = part.begin + part.rows * part.columns;
    matrices_.push_back({part.begin, part.rows, part.columns, rank, p_count_, q_count_});
    p_count_ += part.rows * rank;
    q_count_ += part.columns * rank;
  }
  add_rest({end, shape.count - end});
}

void PowerSgdAllReduce::add_rest(Range range) {
  if (range.count == 0) return;
  rest_.push_back(range);
  rest_count_ += range.count;
}

void PowerSgdAllReduce::all_reduce(Memory memory, ReduceOp op) {
  GXP_ASSERT(memory.bytes == count_ * sizeof(float));
  GXP_ASSERT(op == ReduceOp::kSum || op == ReduceOp::kAvg);
  const std::span<float> data = floats_of(memory);
  fold(kept_buffer_.memory(), memory, DType::kF32, ReduceOp::kSum);
  for (const Matrix& matrix : matrices_) multiply_by_q(matrix);
  move_rest(data, true);
  comm_.all_reduce(p_buffer_.memory(), DType::kF32, ReduceOp::kSum);
  if (op == ReduceOp::kAvg)
    scale(memory_of(p_.data() + p_count_, rest_count_), DType::kF32, 1.0 / comm_.world_size());
  for (const Matrix& matrix : matrices_) {
    orthogonalise(p_.subspan(matrix.p, matrix.rows * matrix.rank), matrix.rank);
    multiply_by_p(matrix);
  }
  comm_.all_reduce(q_buffer_.memory(), DType::kF32, op);
  for (const Matrix& matrix : matrices_) expand(matrix, data);
  move_rest(data, false);
}

uint64_t PowerSgdAllReduce::wire_bytes() const {
  const auto sent = [&](size_t count) {
    return bytes_sent(comm_,
                      {.collective = Collective::kAllReduce, .dtype = DType::kF32, .count = count});
  };
  return sent(p_.size()) + sent(q_.size());
}

void PowerSgdAllReduce::fill_q(const Matrix& matrix) {
  for (size_t i = 0; i < matrix.columns * matrix.rank; ++i) q_[matrix.q + i] = noise(matrix.q + i);
}

// P = M Q. A row of Q^T that has become zero, with its column of P, starts anew.
void PowerSgdAllReduce::multiply_by_q(const Matrix& m) {
  for (size_t k = 0; k < m.rank; ++k) {
    const std::span<float> row = q_.subspan(m.q + k * m.columns, m.columns);
    if (std::all_of(row.begin(), row.end(), [](float x) { return x == 0; })) {
      for (size_t j = 0; j < row.size(); ++j) row[j] = noise(m.q + k * m.columns + j);
    }
  }
  for (size_t i = 0; i < m.rows; ++i) {
    const float* const row = kept_.data() + m.begin + i * m.columns;
    for (size_t k = 0; k < m.rank; ++k)
      p_[m.p + i * m.rank + k] = dot(row, q_.data() + m.q + k * m.columns, m.columns);
  }
}

// Q = M^T P of this rank, and what P Q^T leaves of M is kept.
void PowerSgdAllReduce::multiply_by_p(const Matrix& m) {
  std::fill_n(q_.data() + m.q, m.columns * m.rank, 0.0f);
  const auto for_each_product = [&](const auto& act) {
    for (size_t i = 0; i < m.rows; ++i) {
      float* const row = kept_.data() + m.begin + i * m.columns;
      for (size_t k = 0; k < m.rank; ++k)
        act(row, q_.data() + m.q + k * m.columns, p_[m.p + i * m.rank + k]);
    }
  };
  for_each_product([&](float* row, float* q, float p) { add_multiple(q, row, p, m.columns); });
  for_each_product([&](float* row, float* q, float p) { add_multiple(row, q, -p, m.columns); });
}

// The result P Q^T. If it is not finite, which every rank sees, the state starts anew.
void PowerSgdAllReduce::expand(const Matrix& m, std::span<float> data) {
  const std::span<float> out = data.subspan(m.begin, m.rows * m.columns);
  if (!all_finite(p_.subspan(m.p, m.rows * m.rank)) ||
      !all_finite(q_.subspan(m.q, m.columns * m.rank))) {
    std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
    std::fill_n(kept_.data() + m.begin, out.size(), 0.0f);
    return fill_q(m);
  }
  std::fill(out.begin(), out.end(), 0.0f);
  for (size_t i = 0; i < m.rows; ++i) {
    for (size_t k = 0; k < m.rank; ++k)
      add_multiple(out.data() + i * m.columns, q_.data() + m.q + k * m.columns,
                   p_[m.p + i * m.rank + k], m.columns);
  }
}

// Between the buffer and the end of P; nothing of it is kept.
void PowerSgdAllReduce::move_rest(std::span<float> data, bool into_p) {
  float* packed = p_.data() + p_count_;
  for (const Range& range : rest_) {
    float* const part = data.data() + range.begin;
    if (into_p) {
      std::copy_n(part, range.count, packed);
      std::fill_n(kept_.data() + range.begin, range.count, 0.0f);
    } else {
      std::copy_n(packed, range.count, part);
    }
    packed += range.count;
  }
}

}  // namespace gxp
