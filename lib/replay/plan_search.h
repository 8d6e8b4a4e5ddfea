// Which of several plans is best by memory and time, and what would make a plan fit into a memory:
// for plans of any kind, such as a TrainPlan or a run's settings. Pure.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

struct PlanCost {
  uint64_t bytes = 0;  // of a GPU
  double seconds = 0;  // of a step; 0 where no time is predicted
};

// A setting in which a plan differs from the one that was asked about.
struct ChangedSetting {
  std::string_view name;  // "recompute"
  std::string value;      // "full"
};

template <class Plan>
struct CostedPlan {
  Plan plan;
  PlanCost cost;
  std::vector<ChangedSetting> changes = {};
};

// The Pareto front: from the smallest plan on, those that are faster than all smaller ones; the
// first of equal plans.
template <class Plan>
std::vector<CostedPlan<Plan>> pareto_of(std::vector<CostedPlan<Plan>> plans) {
  std::ranges::stable_sort(plans, [](const auto& a, const auto& b) {
    return a.cost.bytes != b.cost.bytes ? a.cost.bytes < b.cost.bytes
                                        : a.cost.seconds < b.cost.seconds;
  });
  std::vector<CostedPlan<Plan>> front;
  for (auto& plan : plans) {
    if (front.empty() || plan.cost.seconds < front.back().cost.seconds)
      front.push_back(std::move(plan));
  }
  return front;
}

template <class Plan>
struct PlanVariant {
  std::vector<ChangedSetting> changes;
  Plan plan;
};

// Adds the plan with another value of one setting.
template <class Plan, class Set>
void add_variant(std::vector<PlanVariant<Plan>>& variants, const Plan& plan,
                 std::string_view setting, std::string value, const Set& set) {
  variants.push_back({{{setting, std::move(value)}}, plan});
  set(variants.back().plan);
}

// A plan with less memory through one setting: its variants, the smallest change first.
template <class Plan>
using MemorySaving = std::vector<PlanVariant<Plan>> (*)(const Plan& plan);

// The known properties of plans of one kind.
template <class Plan>
struct PlanSpace {
  std::vector<MemorySaving<Plan>> savings;  // from the cheapest to the dearest
  // Completes a plan with the values that follow from its settings. Returns its cost, or nothing if
  // the plan is not possible or does not fit.
  std::function<std::optional<PlanCost>(Plan& plan)> cost_if_it_fits;
};

// The first plan that fits with one variant of each saving in the set, by bits: the dearest saving
// is used as little as possible.
template <class Plan>
std::optional<CostedPlan<Plan>> find_fitting(const PlanSpace<Plan>& space,
                                             const PlanVariant<Plan>& before, unsigned set) {
  if (set == 0) {
    Plan plan = before.plan;
    const std::optional<PlanCost> cost = space.cost_if_it_fits(plan);
    if (!cost) return std::nullopt;
    return CostedPlan<Plan>{std::move(plan), *cost, before.changes};
  }
  const unsigned dearest = std::bit_width(set) - 1;
  for (PlanVariant<Plan>& next : space.savings[dearest](before.plan)) {
    next.changes.insert(next.changes.end(), before.changes.begin(), before.changes.end());
    if (auto found = find_fitting(space, next, set & ~(1U << dearest))) return found;
  }
  return std::nullopt;
}

// Up to `most` ways to make a plan fit, each by another set of savings of which no part suffices.
// Fewer savings come first: larger sets are tried only while there are fewer ways than `most`. In
// the order of time, then of cheapness.
template <class Plan>
std::vector<CostedPlan<Plan>> plans_that_fit(const PlanSpace<Plan>& space, const Plan& plan,
                                             size_t most) {
  std::vector<unsigned> sets((1U << space.savings.size()) - 1);
  std::iota(sets.begin(), sets.end(), 1U);
  std::ranges::stable_sort(sets, {}, [](unsigned set) { return std::popcount(set); });
  std::vector<unsigned> sufficient;
  std::vector<CostedPlan<Plan>> ways;
  int savings = 0;
  for (const unsigned set : sets) {
    if (std::popcount(set) > savings && ways.size() >= most) break;
    savings = std::popcount(set);
    const auto is_part = [&](unsigned part) { return (part & set) == part; };
    if (std::ranges::any_of(sufficient, is_part)) continue;
    auto found = find_fitting(space, {{}, plan}, set);
    if (!found) continue;
    sufficient.push_back(set);
    ways.push_back(std::move(*found));
  }
  std::ranges::stable_sort(ways, {}, [](const auto& way) { return way.cost.seconds; });
  if (ways.size() > most) ways.resize(most);
  return ways;
}

}  // namespace gxp
