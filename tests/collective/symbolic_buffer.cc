#include "tests/collective/symbolic_buffer.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/hash.h"

namespace gxp {
namespace {

bool holds_nothing(const Stretch& stretch) { return stretch.content.contributors == 0; }

// Whether `b`, which lies behind `a`, goes on with it.
bool continues(const Stretch& a, const Stretch& b) {
  return a.content == b.content && (holds_nothing(a) || a.origin + a.range.count == b.origin);
}

std::string problem_of_fold(const Stretch& here, const Stretch& arriving) {
  const size_t element = here.range.begin;
  if (holds_nothing(here) || holds_nothing(arriving)) {
    return fmt::format("element {} would be folded with nothing", element);
  }
  if (here.origin != arriving.origin) {
    return fmt::format("element {} would hold a sum of elements {} and {}", element, here.origin,
                       arriving.origin);
  }
  if ((here.content.contributors & arriving.content.contributors) != 0) {
    return fmt::format("element {} would hold a contribution twice", element);
  }
  return "";
}

}  // namespace

Content leaf(int rank) { return {only(rank), mix64(uint64_t(rank) + 1)}; }
uint64_t join(uint64_t a, uint64_t b) { return mix64(std::min(a, b) + mix64(std::max(a, b))); }

SymbolicBuffer::SymbolicBuffer(size_t size) : size_(size) {
  if (size > 0) stretches_.push_back({{0, size}, 0, {}});
}

void SymbolicBuffer::place(Range range, Content content) {
  const Stretch all{{0, range.count}, range.begin, content};
  if (range.count > 0) store({&all, 1}, range.begin);
}

std::vector<Stretch> SymbolicBuffer::read(Range range) const {
  std::vector<Stretch> found;
  if (range.count == 0) return found;
  auto stretch = std::ranges::lower_bound(stretches_, range.begin + 1, {},
                                          [](const Stretch& s) { return s.range.end(); });
  for (; stretch != stretches_.end() && stretch->range.begin < range.end(); ++stretch) {
    const size_t begin = std::max(stretch->range.begin, range.begin);
    const size_t end = std::min(stretch->range.end(), range.end());
    found.push_back({{begin - range.begin, end - begin},
                     stretch->origin + (begin - stretch->range.begin),
                     stretch->content});
  }
  return found;
}

void SymbolicBuffer::store(std::span<const Stretch> stretches, size_t begin) {
  if (stretches.empty()) return;
  const size_t first = cut_at(begin);
  const size_t last = cut_at(begin + stretches.back().range.end());
  const auto at = [&](size_t index) { return stretches_.begin() + static_cast<long>(index); };
  const auto place =
      stretches_.insert(stretches_.erase(at(first), at(last)), stretches.begin(), stretches.end());
  for (auto stretch = place; stretch != place + static_cast<long>(stretches.size()); ++stretch) {
    stretch->range.begin += begin;
  }
  merge(first, first + stretches.size());
}

std::string SymbolicBuffer::fold(std::span<const Stretch> stretches, size_t begin) {
  if (stretches.empty()) return "";
  const size_t first = cut_at(begin);
  size_t i = first;
  for (Stretch arriving : stretches) {
    arriving.range.begin += begin;
    cut_at(arriving.range.end());
    for (; i < stretches_.size() && stretches_[i].range.begin < arriving.range.end(); ++i) {
      Stretch& here = stretches_[i];
      Stretch part = arriving;
      part.origin += here.range.begin - arriving.range.begin;
      if (std::string problem = problem_of_fold(here, part); !problem.empty()) return problem;
      here.content = {here.content.contributors | part.content.contributors,
                      join(here.content.tree, part.content.tree)};
    }
  }
  merge(first, i);
  return "";
}

size_t SymbolicBuffer::cut_at(size_t begin) {
  const auto next = std::ranges::lower_bound(stretches_, begin, {},
                                             [](const Stretch& s) { return s.range.begin; });
  const auto index = size_t(next - stretches_.begin());
  if (begin == size_ || (next != stretches_.end() && next->range.begin == begin)) return index;
  Stretch& whole = stretches_[index - 1];
  Stretch rest = whole;
  whole.range.count = begin - whole.range.begin;
  rest.range = {begin, rest.range.count - whole.range.count};
  rest.origin += whole.range.count;
  stretches_.insert(next, rest);
  return index;
}

void SymbolicBuffer::merge(size_t first, size_t last) {
  size_t kept = first == 0 ? 0 : first - 1;
  const size_t end = std::min(last + 1, stretches_.size());
  for (size_t i = kept + 1; i < end; ++i) {
    if (continues(stretches_[kept], stretches_[i])) {
      stretches_[kept].range.count += stretches_[i].range.count;
    } else {
      stretches_[++kept] = stretches_[i];
    }
  }
  if (kept + 1 < end) {
    stretches_.erase(stretches_.begin() + static_cast<long>(kept) + 1,
                     stretches_.begin() + static_cast<long>(end));
  }
}

}  // namespace gxp
