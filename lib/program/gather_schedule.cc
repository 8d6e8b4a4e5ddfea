#include "lib/program/gather_schedule.h"

#include <algorithm>

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
        is_live_(layout.wraps.size()) {}

  std::vector<GatherPoint> make() && {
    std::vector<GatherPoint> points(uses_.size());
    for (size_t at = 0; at < uses_.size(); ++at) {
      GatherPoint& point = points[at];
      for (const int wrap : uses_[at].wraps)
        if (!is_live_[size_t(wrap)]) gather(wrap, point.before);
      const bool behind = limits_.backward_prefetch == BackwardPrefetch::kPost;
      if (prefetches(uses_[at]))
        gather_ahead(at, uses_[at].backward && behind ? point.behind : point.before);
      for (const int wrap : uses_[at].wraps)
        if (!stays(wrap, at)) free(wrap, point.freed);
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

  // Whether a wrap that operation `at` reads is kept after it.
  [[nodiscard]] bool stays(int wrap, size_t at) const {
    uint64_t between = 0;
    std::vector<int> seen = {wrap};
    for (size_t next = at + 1; next < uses_.size(); ++next) {
      if (contains(uses_[next].wraps, wrap)) return stays_until(wrap, at, next, between);
      for (const int other : uses_[next].wraps) {
        if (contains(seen, other)) continue;
        seen.push_back(other);
        between += count(other);
      }
    }
    return false;
  }

  // Where it is read again by operation `next`, and `between` other parameters before that.
  [[nodiscard]] bool stays_until(int wrap, size_t at, size_t next, uint64_t between) const {
    const ParameterUse& now = uses_[at];
    const ParameterUse& then = uses_[next];
    if (between == 0 || count(wrap) <= limits_.persist_below) return true;
    if (now.micro != then.micro && limits_.hold_over_micros) return true;
    if (now.micro == then.micro && !now.backward && !reshard_) return true;
    const bool turns = then.backward && !uses_[next - 1].backward;
    if (turns) return true;
    const bool fits = limits_.max_live == 0 || live_ <= limits_.max_live;
    return between <= limits_.reuse_within && limits_.reuse_within > 0 && fits;
  }

  const std::vector<ParameterUse>& uses_;
  const ParameterLayout& layout_;
  const bool reshard_;
  const GatherLimits& limits_;
  std::vector<bool> is_live_;  // by wrap
  uint64_t live_ = 0;          // parameters
};

}  // namespace

std::vector<ParameterUse> parameter_uses(const Architecture& architecture,
                                         const ParameterLayout& layout, int micros, bool backward) {
  const int head = int(architecture.units.size()) - 1;
  const int lowest = architecture.lowest_trained_unit();
  const int lender = architecture.units.back().borrows_from;
  const auto wrap_of = [&](int unit) { return layout.wrap_of[size_t(unit)]; };
  std::vector<ParameterUse> uses;
  for (int micro = 0; micro < micros; ++micro) {
    for (int unit = 0; unit < head; ++unit) uses.push_back({{wrap_of(unit)}, micro, false});
    uses.push_back({{wrap_of(head)}, micro, false});
    if (lender >= 0 && wrap_of(lender) != wrap_of(head))
      uses.back().wraps.push_back(wrap_of(lender));
    for (int unit = head - 1; backward && unit >= lowest; --unit) {
      // A table is read forward only.
      const bool reads = architecture.units[size_t(unit)].kind != UnitKind::kEmbedding;
      uses.push_back({{}, micro, true});
      if (reads) uses.back().wraps.push_back(wrap_of(unit));
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
