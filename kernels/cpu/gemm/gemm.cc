#include "kernels/cpu/gemm/gemm.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "kernels/cpu/gemm/gemm_choice.h"
#include "kernels/cpu/gemm/gemm_kernel.h"
#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr size_t kHugePage = 2 << 20;

// A grid of row_parts x column_parts threads over c.
struct Grid {
  size_t row_parts, column_parts;
};

// Every thread packs its rows of a and its columns of b: the grid whose parts have the fewest of
// both together. With equal cost the one with the fewest row parts.
Grid choose_grid(const GemmArgs& args, const GemmKernel& kernel, size_t threads) {
  const auto cost = [&](size_t row_parts) {
    const size_t rows = args.m / row_parts + 1;
    const size_t columns = args.n * row_parts / threads + 1;
    return rows * (columns / kernel.block_columns + 1) + columns * (rows / kernel.block_rows + 1);
  };
  size_t best = 1;
  for (size_t row_parts = 2; row_parts <= threads; ++row_parts)
    if (threads % row_parts == 0 && cost(row_parts) < cost(best)) best = row_parts;
  return {best, threads / best};
}

GemmPart part_of(const GemmArgs& args, const Grid& grid, size_t thread, size_t column_step) {
  const size_t i = thread / grid.column_parts;
  const size_t j = thread % grid.column_parts;
  const size_t panels = (args.n + column_step - 1) / column_step;
  const auto column = [&](size_t part) {
    return std::min(args.n, panels * part / grid.column_parts * column_step);
  };
  return {args.m * i / grid.row_parts, args.m * (i + 1) / grid.row_parts, column(j), column(j + 1)};
}

}  // namespace

void Gemm::Free::operator()(float* scratch) const { std::free(scratch); }

Gemm::Gemm(ThreadPool& pool, const GemmKernels& kernels)
    : pool_(pool), floats_(*kernels.floats), bf16_(*kernels.bf16) {
  const size_t floats = std::max(floats_.scratch_floats, bf16_.scratch_floats);
  const size_t bytes = round_up(floats * sizeof(float), kHugePage);
  for (int thread = 0; thread < pool.thread_count(); ++thread) {
    auto* scratch = static_cast<float*>(std::aligned_alloc(kHugePage, bytes));
    if (scratch == nullptr) throw std::bad_alloc();
    scratch_.emplace_back(scratch);
    ::madvise(scratch, bytes, MADV_HUGEPAGE);  // where refused, small pages do
  }
  // Each thread touches its own first, so that it lies near the thread's CPU.
  pool.run([&](int thread) { std::memset(scratch_[size_t(thread)].get(), 0, bytes); });
}

void Gemm::run(const GemmArgs& args) {
  if (args.m == 0 || args.n == 0) return;
  if (args.is_of_few_rows())
    return pool_.run([&](int thread) {
      const Grid columns = {1, scratch_.size()};
      floats_.few_rows(args, part_of(args, columns, size_t(thread), floats_.column_step));
    });
  const GemmKernel& kernel = args.product_type() == DType::kBF16 ? bf16_ : floats_;
  const Grid grid = choose_grid(args, kernel, scratch_.size());
  pool_.run([&](int thread) {
    const auto t = static_cast<size_t>(thread);
    kernel.compute(args, part_of(args, grid, t, kernel.column_step), scratch_[t].get());
  });
}

}  // namespace gxp
