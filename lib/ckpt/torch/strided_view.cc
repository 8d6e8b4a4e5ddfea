#include "lib/ckpt/torch/strided_view.h"

#include <algorithm>
#include <cstring>

#include "lib/ckpt/named_tensors.h"

namespace gxp {
namespace {

constexpr uint64_t kGatherWindow = 65536;  // bytes of the storage that are read at once

// One axis of a block: `count` elements, each `stride` after the other in the storage, and `place`
// in the output.
struct GatherAxis {
  uint64_t count = 1;
  uint64_t stride = 1;
  uint64_t place = 1;
};

// A part of the view that is a box: complete along its inner axes.
struct GatherBlock {
  uint64_t source = 0;  // its first element in the storage
  uint64_t elements = 1;
  std::vector<GatherAxis> axes = {};  // of more than one element; the first is read in runs
};

// The largest block that begins with the row-major element `begin` and has at most `limit`.
GatherBlock block_at(const StridedView& view, uint64_t begin, uint64_t limit) {
  GatherBlock block{.source = view.offset};
  bool open = true;  // whether all axes further in are complete
  for (size_t k = view.shape.size(); k-- > 0;) {
    const uint64_t size = view.shape[k];
    const uint64_t index = begin % size;
    begin /= size;
    block.source += index * view.strides[k];
    if (!open) continue;
    const uint64_t count = std::min(size - index, limit / block.elements);
    if (count > 1) block.axes.push_back({count, view.strides[k], block.elements});
    block.elements *= count;
    open = count == size;
  }
  // Expanded axes last: their element is read as often as the axes before them ask for it.
  std::ranges::stable_sort(block.axes, {}, [](const GatherAxis& axis) { return axis.stride - 1; });
  if (block.axes.empty()) block.axes.emplace_back();
  return block;
}

template <size_t kElement>
void spread(std::byte* out, const std::byte* in, const GatherAxis& axis) {
  for (uint64_t i = 0; i < axis.count; ++i)
    std::memcpy(out + i * axis.place * kElement, in + i * axis.stride * kElement, kElement);
}

void spread(std::byte* out, const std::byte* in, const GatherAxis& axis, size_t element) {
  switch (element) {
    case 1:
      return spread<1>(out, in, axis);
    case 2:
      return spread<2>(out, in, axis);
    case 4:
      return spread<4>(out, in, axis);
    default:
      GXP_ASSERT(element == 8);
      return spread<8>(out, in, axis);
  }
}

// The elements of one axis, of which the first is the storage's element `source`.
void read_run(const StridedView& view, uint64_t source, GatherAxis axis, std::byte* out,
              std::vector<std::byte>& window) {
  const size_t element = view.element;
  if (axis.stride == 1 && axis.place == 1)
    return view.storage.read(source * element, {out, axis.count * element});
  const uint64_t at_once =
      axis.stride == 0 ? axis.count : std::max<uint64_t>(1, kGatherWindow / element / axis.stride);
  while (axis.count > 0) {
    const GatherAxis part{std::min(axis.count, at_once), axis.stride, axis.place};
    window.resize(((part.count - 1) * part.stride + 1) * element);
    view.storage.read(source * element, memory_of(window));
    spread(out, window.data(), part, element);
    source += part.count * part.stride;
    out += part.count * part.place * element;
    axis.count -= part.count;
  }
}

void read_block(const StridedView& view, const GatherBlock& block, std::byte* out,
                std::vector<std::byte>& window) {
  std::vector<uint64_t> index(block.axes.size(), 0);
  for (;;) {
    uint64_t source = block.source, place = 0;
    for (size_t k = 1; k < index.size(); ++k) {
      source += index[k] * block.axes[k].stride;
      place += index[k] * block.axes[k].place;
    }
    read_run(view, source, block.axes[0], out + place * view.element, window);
    size_t k = 1;
    while (k < index.size() && ++index[k] == block.axes[k].count) index[k++] = 0;
    if (k >= index.size()) return;
  }
}

}  // namespace

bool fits(const StridedView& view) {
  const auto count = checked_count(view.shape);
  if (!count) return false;
  if (*count == 0) return true;
  uint64_t last = view.offset;
  bool overflow = false;
  for (size_t k = 0; k < view.shape.size(); ++k) {
    uint64_t step = 0;
    overflow |= __builtin_mul_overflow(view.shape[k] - 1, view.strides[k], &step);
    overflow |= __builtin_add_overflow(last, step, &last);
  }
  return !overflow && last < view.storage.bytes / view.element;
}

StridedView with_joined_axes(StridedView view) {
  std::vector<uint64_t> shape, strides;
  for (size_t k = 0; k < view.shape.size(); ++k) {
    if (view.shape[k] == 1) continue;
    const bool joins = !shape.empty() && strides.back() == view.strides[k] * view.shape[k];
    if (!joins) {
      shape.push_back(view.shape[k]);
      strides.push_back(view.strides[k]);
      continue;
    }
    shape.back() *= view.shape[k];
    strides.back() = view.strides[k];
  }
  view.shape = std::move(shape);
  view.strides = std::move(strides);
  return view;
}

void read_strided(const StridedView& view, uint64_t begin, Memory out) {
  std::vector<std::byte> window;
  uint64_t left = out.bytes / view.element;
  for (std::byte* to = out.data; left > 0;) {
    const GatherBlock block = block_at(view, begin, left);
    read_block(view, block, to, window);
    begin += block.elements;
    left -= block.elements;
    to += block.elements * view.element;
  }
}

}  // namespace gxp
