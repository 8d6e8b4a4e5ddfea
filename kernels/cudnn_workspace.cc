#include "kernels/cudnn_workspace.h"

#include <algorithm>
#include <charconv>

#include "lib/base/bytes.h"

namespace gxp {
namespace {

constexpr size_t kTile = 128;       // of positions, to which plans round
constexpr size_t kSlack = 4096;     // in bytes; 256 were seen
constexpr size_t kAlignment = 256;  // of the plan's workspace after the sums

std::vector<AttentionSlice> cut(const AttentionShape& batch, size_t rows, size_t groups) {
  std::vector<AttentionSlice> slices;
  for (size_t row = 0; row < batch.batch; row += rows)
    for (size_t group = 0; group < batch.kv_heads; group += groups)
      slices.push_back({row, std::min(rows, batch.batch - row), group,
                        std::min(groups, batch.kv_heads - group)});
  return slices;
}

}  // namespace

// cuDNN reads rows of heads 16 bytes at a time.
Support cudnn_takes(DType dtype, size_t head_size, const AttentionScores& scores,
                    bool has_documents) {
  if (dtype == DType::kF32) return {false, "it computes in halves"};
  if (head_size % 8 != 0) return {false, "heads are not a multiple of 8 channels"};
  if (scores.window != 0) return {false, "its graph has no sliding window"};
  if (scores.cap != 0) return {false, "its graph has no cap of scores"};
  if (has_documents) return {false, "its graph has one document in a row"};
  return {};
}

size_t most_cudnn_workspace(const Environment& environment) {
  const std::string* const text = find_variable(environment, kCudnnSliceVariable);
  if (text == nullptr) return kMostCudnnWorkspace;
  size_t count = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, count);
  if (error != std::errc() || rest != end || count < 1 || count > size_t{1} << 20)
    fail(ErrorKind::kConfig, "{} is '{}': must be a number of MiB from 1 to 1048576",
         kCudnnSliceVariable, *text);
  return count << 20;
}

AttentionShape shape_of(const AttentionShape& batch, const AttentionSlice& slice) {
  AttentionShape part = batch;
  part.batch = slice.rows;
  part.kv_heads = slice.groups;
  part.heads = batch.heads / batch.kv_heads * slice.groups;
  return part;
}

size_t cudnn_sum_bytes(const AttentionShape& shape, SumOrder order) {
  if (order == SumOrder::kFixed) return 0;
  const size_t sums = shape.batch * shape.heads * shape.positions * shape.head_size;
  return round_up(sums * sizeof(float), kAlignment);
}

size_t cudnn_workspace_bytes(const AttentionShape& shape, SumOrder order) {
  const size_t rounded = round_up(shape.positions, kTile);
  const size_t heads = shape.batch * shape.heads;
  const size_t of_scores = heads * rounded * rounded * sizeof(uint16_t);
  const size_t of_heads = heads * rounded * shape.head_size * sizeof(float);
  const size_t of_groups = shape.heads == shape.kv_heads ? 0 : 2 * of_heads;
  const size_t of_order = order == SumOrder::kFixed ? of_scores : of_heads;
  return cudnn_sum_bytes(shape, order) + of_order + of_groups + kSlack;
}

std::vector<AttentionSlice> attention_slices(const AttentionShape& batch, size_t most,
                                             SumOrder order) {
  const auto fits = [&](size_t rows, size_t groups) {
    return cudnn_workspace_bytes(shape_of(batch, {0, rows, 0, groups}), order) <= most;
  };
  const auto share = [](size_t count, size_t parts) { return (count + parts - 1) / parts; };
  for (size_t parts = 1; parts <= batch.batch; ++parts) {
    const size_t rows = share(batch.batch, parts);
    if (fits(rows, batch.kv_heads)) return cut(batch, rows, batch.kv_heads);
  }
  for (size_t parts = 2; parts <= batch.kv_heads; ++parts) {
    const size_t groups = share(batch.kv_heads, parts);
    if (fits(1, groups)) return cut(batch, 1, groups);
  }
  return {};
}

}  // namespace gxp
