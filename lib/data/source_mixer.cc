#include "lib/data/source_mixer.h"

#include <cmath>

#include "lib/base/error.h"
#include "lib/base/hash.h"

namespace gxp {
namespace {

// Below 2^32, so that a product with a remainder by the sum of all fits into 64 bits.
constexpr double kMostShares = 0x1p31;

// The weights as whole numbers of the same proportions.
std::vector<uint64_t> whole_shares(const std::vector<MixedSource>& sources) {
  double sum = 0;
  for (const MixedSource& source : sources) sum += source.weight;
  GXP_ASSERT(std::isfinite(sum));
  double factor = 1;
  const auto is_whole = [&](const MixedSource& source) {
    const double share = source.weight * factor;
    return share >= 0.5 && std::abs(share - std::round(share)) <= 1e-9 * share;
  };
  const auto are_whole = [&] {
    for (const MixedSource& source : sources)
      if (!is_whole(source)) return false;
    return true;
  };
  while (sum * factor <= kMostShares && !are_whole()) factor *= 10;
  if (sum * factor > kMostShares) factor = kMostShares / sum;
  std::vector<uint64_t> shares;
  // A source of a share too small for this still has one.
  for (const MixedSource& source : sources)
    shares.push_back(uint64_t(std::max(1.0, std::round(source.weight * factor))));
  return shares;
}

}  // namespace

SourceMixer::SourceMixer(const std::vector<MixedSource>& sources, RowOrder order, uint64_t seed) {
  GXP_ASSERT(!sources.empty());
  for (const uint64_t share : whole_shares(sources))
    share_sums_.push_back(share_sums_.back() + share);
  for (const MixedSource& source : sources) {
    const uint64_t number = orders_.size();
    orders_.emplace_back(order, number == 0 ? seed : mix64(seed + mix64(number)),
                         source.sample_count);
    sample_counts_.push_back(source.sample_count);
  }
}

uint64_t SourceMixer::left_of(const Range& node, uint64_t position) const {
  const size_t middle = node.begin + (node.end - node.begin) / 2;
  const uint64_t sum = share_sums_[node.end] - share_sums_[node.begin];
  const uint64_t left = share_sums_[middle] - share_sums_[node.begin];
  // The quotient and the remainder apart, so that no product overflows.
  return position / sum * left + position % sum * left / sum;
}

SourceMixer::Place SourceMixer::at(uint64_t position) const {
  Range node{0, orders_.size()};
  while (node.end - node.begin > 1) {
    const size_t middle = node.begin + (node.end - node.begin) / 2;
    const uint64_t left = left_of(node, position);
    if (left_of(node, position + 1) > left) {
      node.end = middle;
      position = left;
    } else {
      node.begin = middle;
      position -= left;
    }
  }
  const uint64_t count = sample_counts_[node.begin];
  return {node.begin, orders_[node.begin].at(position), position / count};
}

uint64_t SourceMixer::samples_before(uint64_t position, size_t source) const {
  GXP_ASSERT(source < orders_.size());
  Range node{0, orders_.size()};
  while (node.end - node.begin > 1) {
    const size_t middle = node.begin + (node.end - node.begin) / 2;
    const uint64_t left = left_of(node, position);
    const bool is_left = source < middle;
    position = is_left ? left : position - left;
    (is_left ? node.end : node.begin) = middle;
  }
  return position;
}

}  // namespace gxp
