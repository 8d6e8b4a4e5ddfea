#include "lib/ckpt/tensor_boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"

namespace gxp {
namespace {

using BoxShape = std::vector<uint64_t>;

constexpr uint64_t kBoxBufferBytes = uint64_t{1} << 20;

void check_box_bounds(const BoxShape& shape, const TensorBox& box, const std::string& where) {
  if (box.offsets.size() != shape.size() || box.sizes.size() != shape.size())
    fail(ErrorKind::kCorrupt, "{}: the chunk at {} does not have the tensor's {} axes", where,
         to_string(box), shape.size());
  for (size_t k = 0; k < shape.size(); ++k) {
    if (box.offsets[k] <= shape[k] && box.sizes[k] <= shape[k] - box.offsets[k]) continue;
    fail(ErrorKind::kCorrupt, "{}: the chunk at {} reaches beyond the tensor's shape ({})", where,
         to_string(box), joined(shape, ", "));
  }
}

// The axis along which the boxes begin at the most places.
size_t sweep_axis(size_t axes, const std::vector<const TensorBox*>& boxes) {
  size_t best = 0, most = 0;
  for (size_t k = 0; k < axes; ++k) {
    std::set<uint64_t> offsets;
    for (const TensorBox* box : boxes) offsets.insert(box->offsets[k]);
    if (offsets.size() <= most) continue;
    most = offsets.size();
    best = k;
  }
  return best;
}

bool overlap(const TensorBox& a, const TensorBox& b) {
  for (size_t k = 0; k < a.sizes.size(); ++k) {
    if (a.offsets[k] >= b.offsets[k] + b.sizes[k] || b.offsets[k] >= a.offsets[k] + a.sizes[k])
      return false;
  }
  return true;
}

// A sweep along one axis: a box is compared with those that the plane at its beginning cuts.
void check_disjoint(size_t axes, std::vector<const TensorBox*> boxes, const std::string& where) {
  const size_t axis = axes == 0 ? 0 : sweep_axis(axes, boxes);
  if (axes > 0)
    std::ranges::sort(boxes, {}, [&](const TensorBox* box) { return box->offsets[axis]; });
  std::vector<const TensorBox*> cut;
  uint64_t comparisons = 0;
  for (const TensorBox* box : boxes) {
    comparisons += cut.size() + 1;
    if (comparisons > kMaxBoxComparisons)
      fail(ErrorKind::kCorrupt,
           "{}: its {} chunks are cut in too many different ways to check them for overlaps", where,
           boxes.size());
    std::erase_if(cut, [&](const TensorBox* other) {
      return axes > 0 && other->offsets[axis] + other->sizes[axis] <= box->offsets[axis];
    });
    for (const TensorBox* other : cut) {
      if (overlap(*box, *other))
        fail(ErrorKind::kCorrupt, "{}: the chunk at {} overlaps the one at {}", where,
             to_string(*box), to_string(*other));
    }
    cut.push_back(box);
  }
}

// A box as runs: elements that follow each other in the box and in the whole tensor.
class BoxRuns {
 public:
  BoxRuns(const BoxShape& shape, BoxPart part);

  // In the whole, row-major: the first element, and the one after the last.
  [[nodiscard]] uint64_t begin() const { return run_begin(0); }
  [[nodiscard]] uint64_t end() const { return run_begin(runs_ - 1) + run_; }
  // Puts what the box has of the whole's elements from `begin` on into their places in `out`.
  void read(uint64_t begin, Memory out) const;

 private:
  struct Axis {
    uint64_t size = 1;    // of the box
    uint64_t stride = 1;  // in the whole
  };
  [[nodiscard]] uint64_t run_begin(uint64_t run) const;
  // The first run that ends after the whole's element `begin`.
  [[nodiscard]] uint64_t first_run(uint64_t begin) const;
  void copy_run(uint64_t run, const std::byte* elements, uint64_t begin, Memory out) const;

  NamedTensor tensor_;
  size_t element_;
  uint64_t first_ = 0;
  uint64_t run_ = 1;  // elements
  uint64_t runs_ = 1;
  std::vector<Axis> outer_;  // those that the runs are along, outermost first
};

BoxRuns::BoxRuns(const BoxShape& shape, BoxPart part)
    : tensor_(std::move(part.tensor)), element_(size_of(tensor_.info.dtype)) {
  uint64_t stride = 1;
  bool complete = true;  // whether the box has all of the axes further in
  for (size_t k = shape.size(); k-- > 0;) {
    first_ += part.box.offsets[k] * stride;
    if (complete) {
      run_ *= part.box.sizes[k];
    } else {
      runs_ *= part.box.sizes[k];
      outer_.insert(outer_.begin(), {part.box.sizes[k], stride});
    }
    complete = complete && part.box.sizes[k] == shape[k];
    stride *= shape[k];
  }
}

uint64_t BoxRuns::run_begin(uint64_t run) const {
  uint64_t begin = first_;
  for (auto axis = outer_.rbegin(); axis != outer_.rend(); ++axis) {
    begin += run % axis->size * axis->stride;
    run /= axis->size;
  }
  return begin;
}

uint64_t BoxRuns::first_run(uint64_t begin) const {
  uint64_t low = 0, high = runs_;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (run_begin(middle) + run_ <= begin)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void BoxRuns::copy_run(uint64_t run, const std::byte* elements, uint64_t begin, Memory out) const {
  const uint64_t at = run_begin(run);
  const uint64_t from = std::max(at, begin);
  const uint64_t to = std::min(at + run_, begin + out.bytes / element_);
  std::memcpy(out.data + (from - begin) * element_, elements + (from - at) * element_,
              (to - from) * element_);
}

void BoxRuns::read(uint64_t begin, Memory out) const {
  const uint64_t end = begin + out.bytes / element_;
  const uint64_t at_once = std::max<uint64_t>(1, kBoxBufferBytes / element_ / run_);
  std::vector<std::byte> buffer;
  for (uint64_t run = first_run(begin); run < runs_ && run_begin(run) < end;) {
    const uint64_t at = run_begin(run);
    if (at_once == 1 || runs_ == 1) {
      const uint64_t from = std::max(at, begin);
      const uint64_t count = std::min(at + run_, end) - from;
      tensor_.read(run * run_ + (from - at),
                   out.slice((from - begin) * element_, count * element_));
      ++run;
      continue;
    }
    uint64_t last = run + 1;  // the one after
    while (last < runs_ && last - run < at_once && run_begin(last) < end) ++last;
    buffer.resize((last - run) * run_ * element_);
    tensor_.read(run * run_, memory_of(buffer));
    for (const std::byte* from = buffer.data(); run < last; ++run, from += run_ * element_)
      copy_run(run, from, begin, out);
  }
}

}  // namespace

std::string to_string(const TensorBox& box) {
  return fmt::format("({}) of size ({})", joined(box.offsets, ", "), joined(box.sizes, ", "));
}

void check_tiling(const BoxShape& shape, const std::vector<TensorBox>& boxes,
                  const std::string& where) {
  const auto count = checked_count(shape);
  if (!count) fail(ErrorKind::kCorrupt, "{}: the shape's product exceeds 64 bits", where);
  std::vector<const TensorBox*> filled;
  for (const TensorBox& box : boxes) {
    check_box_bounds(shape, box, where);
    if (checked_count(box.sizes) != 0) filled.push_back(&box);
  }
  check_disjoint(shape.size(), filled, where);
  uint64_t covered = 0;  // no more than *count, as the boxes are disjoint
  for (const TensorBox* box : filled) covered += checked_count(box->sizes).value();
  if (covered != *count)
    fail(ErrorKind::kCorrupt, "{}: {} of its {} elements are in no chunk", where, *count - covered,
         *count);
}

NamedTensor join_boxes(TensorInfo info, std::vector<BoxPart> parts) {
  std::vector<BoxRuns> boxes;
  for (BoxPart& part : parts) {
    if (checked_count(part.box.sizes) != 0) boxes.emplace_back(info.shape, std::move(part));
  }
  std::ranges::sort(boxes, {}, &BoxRuns::begin);
  // Owners: the copies of the function below.
  const auto shared = std::make_shared<const std::vector<BoxRuns>>(std::move(boxes));
  const size_t element = size_of(info.dtype);
  return {std::move(info), [shared, element](uint64_t begin, Memory out) {
            const uint64_t end = begin + out.bytes / element;
            for (const BoxRuns& box : *shared) {
              if (box.begin() >= end) break;
              if (box.end() > begin) box.read(begin, out);
            }
          }};
}

}  // namespace gxp
