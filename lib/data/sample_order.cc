#include "lib/data/sample_order.h"

#include "lib/base/error.h"
#include "lib/base/hash.h"

namespace gxp {
namespace {

// Four rounds are a strong permutation for random round functions (Luby & Rackoff 1988); the others
// make up for tiny halves, where few functions exist.
constexpr int kRounds = 8;

// SplitMix64's output function: Steele, Lea & Flood, OOPSLA 2014.
constexpr uint64_t mix(uint64_t x) { return mix64(x + 0x9e3779b97f4a7c15u); }

}  // namespace

SampleOrder::SampleOrder(RowOrder order, uint64_t seed, uint64_t sample_count)
    : shuffled_(order == RowOrder::kShuffled), seed_(seed), sample_count_(sample_count) {
  GXP_ASSERT(sample_count > 0 && sample_count <= uint64_t{1} << 62);
  while (uint64_t{1} << (2 * half_bits_) < sample_count_) ++half_bits_;
}

uint64_t SampleOrder::at(uint64_t position) const {
  const uint64_t epoch = position / sample_count_;
  uint64_t sample = position % sample_count_;
  if (!shuffled_) return sample;
  const uint64_t key = mix(mix(seed_) ^ epoch);
  do {
    sample = permute(sample, key);
  } while (sample >= sample_count_);
  return sample;
}

uint64_t SampleOrder::permute(uint64_t value, uint64_t key) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t folded = left ^ (mix(key + mix(right + (uint64_t(round) << 32))) & mask);
    left = right;
    right = folded;
  }
  return left << half_bits_ | right;
}

}  // namespace gxp
