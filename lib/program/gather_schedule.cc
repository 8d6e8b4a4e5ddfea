#include "lib/program/gather_schedule.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace gxp {
namespace {

bool contains(const std::vector<int>& wraps, int wrap) {
  return std::ranges::find(wraps, wrap) != wraps.end();
}

class Schedule {
 public:
  Schedule(const std::vector<ParameterUse>& uses, const ParameterLayout& layout, bool reshard,
           const GatherLimits& limits)
      : uses_(uses),
        layout_(layout),
        reshard_(reshard),
        limits_(limits),
        next_use_(uses.size()),
        is_live_(layout.wraps.size()),
        seen_(layout.wraps.size()) {
    std::vector<size_t> later(layout.wraps.size(), kNever);
    for (size_t at = uses.size(); at-- > 0;) {
      for (const int wrap : uses[at].wraps) next_use_[at].push_back(later[size_t(wrap)]);
      for (const int wrap : uses[at].wraps) later[size_t(wrap)] = at;
    }
  }

  std::vector<GatherPoint> make() && {
    std::vector<GatherPoint> points(uses_.size());
    for (size_t at = 0; at < uses_.size(); ++at) {
      GatherPoint& point = points[at];
      for (const int wrap : uses_[at].wraps)
        if (!is_live_[size_t(wrap)]) gather(wrap, point.before);
      const bool behind = limits_.backward_prefetch == BackwardPrefetch::kPost;
      if (prefetches(uses_[at]))
        gather_ahead(at, uses_[at].backward && behind ? point.behind : point.before);
      for (size_t i = 0; i < uses_[at].wraps.size(); ++i) {
        const size_t next = next_use_[at][i];
        const int wrap = uses_[at].wraps[i];
        if (next == kNever || !stays_until(wrap, at, next)) free(wrap, point.freed);
      }
    }
    return points;
  }

 private:
  [[nodiscard]] uint64_t count(int wrap) const { return layout_.wraps[size_t(wrap)].flat.count; }

  [[nodiscard]] bool prefetches(const ParameterUse& use) const {
    return use.backward ? limits_.backward_prefetch != BackwardPrefetch::kNone
                        : limits_.forward_prefetch;
  }

  void gather(int wrap, std::vector<int>& list) {
    list.push_back(wrap);
    is_live_[size_t(wrap)] = true;
    live_ += count(wrap);
  }
  void free(int wrap, std::vector<int>& list) {
    list.push_back(wrap);
    is_live_[size_t(wrap)] = false;
    live_ -= count(wrap);
  }

  // In the order of their use, up to the first that a limit forbids. Wraps that one operation reads
  // together count as one.
  void gather_ahead(size_t at, std::vector<int>& list) {
    std::vector<int> seen = uses_[at].wraps;
    uint64_t ahead = 0;
    int wraps = 0;
    for (size_t next = at + 1; next < uses_.size(); ++next) {
      std::vector<int> fresh;
      for (const int wrap : uses_[next].wraps)
        if (!contains(seen, wrap)) fresh.push_back(wrap);
      if (!fresh.empty() && ++wraps > limits_.wraps_ahead) return;
      for (const int wrap : fresh) {
        seen.push_back(wrap);
        ahead += count(wrap);
        if (limits_.max_ahead > 0 && ahead > limits_.max_ahead) return;
        if (is_live_[size_t(wrap)]) continue;
        if (limits_.max_live > 0 && live_ + count(wrap) > limits_.max_live) return;
        gather(wrap, list);
      }
    }
  }

  // Whether an FSDP unit that operation `at` reads is kept after it, where it is read again by
  // operation `next`.
  bool stays_until(int wrap, size_t at, size_t next) {
    const ParameterUse& now = uses_[at];
    const ParameterUse& then = uses_[next];
    if (count(wrap) <= limits_.persist_below) return true;
    if (now.micro != then.micro && limits_.hold_over_micros) return true;
    if (now.micro == then.micro && !now.backward && !reshard_) return true;
    const bool turns = then.backward && !uses_[next - 1].backward;
    if (turns || !reads_more_than(0, wrap, at, next)) return true;
    const bool fits = limits_.max_live == 0 || live_ <= limits_.max_live;
    return limits_.reuse_within > 0 && fits &&
           !reads_more_than(limits_.reuse_within, wrap, at, next);
  }

  // Whether operations between the two read more than `most` other parameters.
  bool reads_more_than(uint64_t most, int wrap, size_t at, size_t next) {
    ++round_;
    seen_[size_t(wrap)] = round_;
    uint64_t sum = 0;
    for (size_t between = at + 1; between < next; ++between) {
      for (const int other : uses_[between].wraps) {
        if (std::exchange(seen_[size_t(other)], round_) != round_) sum += count(other);
      }
      if (sum > most) return true;
    }
    return false;
  }

  static constexpr size_t kNever = SIZE_MAX;

  const std::vector<ParameterUse>& uses_;
  const ParameterLayout& layout_;
  const bool reshard_;
  const GatherLimits& limits_;
  std::vector<std::vector<size_t>> next_use_;  // by use, then FSDP unit; kNever: there is none
  std::vector<bool> is_live_;                  // by FSDP unit
  std::vector<uint64_t> seen_;                 // by FSDP unit: the last round_ that has met it
  uint64_t round_ = 0;
  uint64_t live_ = 0;  // parameters
};

}  // namespace

std::vector<ParameterUse> parameter_uses(const Architecture& architecture,
                                         const ParameterLayout& layout, int micros, bool backward) {
  const int head = int(architecture.units.size()) - 1;
  const int lowest = architecture.lowest_trained_unit();
  const int lender = architecture.units.back().borrows_from;
  const auto wraps_of = [&](int unit) {
    std::vector<int> wraps;
    for (const UnitPart* part :
         {&layout.units[size_t(unit)].frozen, &layout.units[size_t(unit)].trained})
      if (part->wrap >= 0) wraps.push_back(part->wrap);
    return wraps;
  };
  std::vector<ParameterUse> uses;
  for (int micro = 0; micro < micros; ++micro) {
    for (int unit = 0; unit <= head; ++unit) uses.push_back({wraps_of(unit), micro, false});
    if (lender >= 0) {
      std::vector<int>& wraps = uses.back().wraps;
      const int borrowed = layout.units[size_t(lender)].part_with(0).wrap;
      if (!contains(wraps, borrowed)) wraps.push_back(borrowed);
    }
    for (int unit = head - 1; backward && unit >= lowest; --unit) {
      // A table is read forward only.
      const bool reads = architecture.units[size_t(unit)].kind != UnitKind::kEmbedding;
      uses.push_back({reads ? wraps_of(unit) : std::vector<int>{}, micro, true});
    }
  }
  return uses;
}

std::vector<GatherPoint> schedule_gathers(const std::vector<ParameterUse>& uses,
                                          const ParameterLayout& layout, bool reshard,
                                          const GatherLimits& limits) {
  return Schedule(uses, layout, reshard, limits).make();
}

}  // namespace gxp
