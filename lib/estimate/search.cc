#include "lib/estimate/search.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/divisors.h"
#include "lib/estimate/pareto.h"
#include "lib/estimate/predict_memory.h"
#include "lib/estimate/predict_time.h"

namespace gxp {
namespace {

// Calls `visit` with each plan of the space that is possible.
template <class Visit>
class Walk {
 public:
  Walk(const TrainCase& base, const SearchSpace& space, Visit visit)
      : question_(base), space_(space), visit_(std::move(visit)) {}

  void cut_model() {
    TrainPlan& plan = question_.plan;
    for (const int tensor : space_.tensors) {
      for (const int pipeline : space_.pipelines) {
        for (const int interleave : space_.interleaves) {
          plan.tensor = tensor;
          plan.pipeline = pipeline;
          plan.interleave = interleave;
          plan.shard = 0;
          if (is_possible(question_)) cut_batch();
        }
      }
    }
  }

 private:
  void cut_batch() {
    TrainPlan& plan = question_.plan;
    const auto replicas = uint64_t(plan.replicas());
    if (space_.global_batch % replicas != 0) return;
    const uint64_t sequences = space_.global_batch / replicas;
    for (const uint64_t micro_batch : divisors(sequences)) {
      plan.micro_batch = micro_batch;
      plan.accumulation = sequences / micro_batch;
      shard_states();
    }
  }

  void shard_states() {
    TrainPlan& plan = question_.plan;
    for (const int stage : space_.stages) {
      plan.stage = stage;
      for (const uint64_t shard : divisors(uint64_t(plan.data_ranks()))) {
        // Stage 0 shards nothing, so one size stands for all.
        if (stage == 0 && shard > 1) break;
        plan.shard = int(shard);
        save_memory();
      }
    }
  }

  void save_memory() {
    for (const Recompute recompute : space_.recomputes) {
      for (const StateOffload offload : space_.offloads) {
        question_.plan.recompute = recompute;
        question_.plan.offload = offload;
        if (is_possible(question_)) visit_(question_);
      }
    }
  }

  TrainCase question_;
  const SearchSpace& space_;
  Visit visit_;
};

struct Edit {
  std::string what;
  TrainPlan plan;
};

// The plan on as many copies of the model as `change` leaves, with the same sequences in a step;
// nothing if they cannot be dealt out.
template <class Make>
void add_edit(const TrainPlan& plan, std::string what, Make change, std::vector<Edit>& edits) {
  Edit edit{std::move(what), plan};
  change(edit.plan);
  if (edit.plan.tensor * edit.plan.pipeline * edit.plan.context > edit.plan.gpus) return;
  const uint64_t sequences = plan.micro_batch * plan.accumulation * uint64_t(plan.replicas());
  const uint64_t each = edit.plan.micro_batch * uint64_t(edit.plan.replicas());
  if (each == 0 || sequences % each != 0) return;
  edit.plan.accumulation = sequences / each;
  edits.push_back(std::move(edit));
}

std::vector<Edit> single_edits(const TrainPlan& plan) {
  std::vector<Edit> edits;
  const auto add = [&](std::string what, auto change) {
    add_edit(plan, std::move(what), change, edits);
  };
  for (int stage = plan.stage + 1; stage <= 3; ++stage)
    add(fmt::format("stage {}", stage), [=](TrainPlan& p) { p.stage = stage; });
  if (plan.shards() < plan.data_ranks())
    add("shard over all ranks", [](TrainPlan& p) { p.shard = 0; });
  for (int i = int(plan.recompute) + 1; i < int(kRecomputeNames.size()); ++i)
    add(fmt::format("recompute {}", kRecomputeNames[size_t(i)]),
        [=](TrainPlan& p) { p.recompute = Recompute(i); });
  for (uint64_t micro_batch = plan.micro_batch / 2; micro_batch >= 1; micro_batch /= 2)
    add(fmt::format("micro-batch {}", micro_batch),
        [=](TrainPlan& p) { p.micro_batch = micro_batch; });
  for (int i = int(plan.offload) + 1; i < int(kOffloadNames.size()); ++i)
    add(fmt::format("offload {}", kOffloadNames[size_t(i)]),
        [=](TrainPlan& p) { p.offload = StateOffload(i); });
  for (int tensor = 2 * plan.tensor; tensor <= 8; tensor *= 2)
    add(fmt::format("tensor-parallel {}", tensor), [=](TrainPlan& p) { p.tensor = tensor; });
  for (int pipeline = 2 * plan.pipeline; pipeline <= 16; pipeline *= 2)
    add(fmt::format("pipeline-parallel {}", pipeline),
        [=](TrainPlan& p) { p.pipeline = pipeline; });
  for (const int times : {2, 4, 8})
    add(fmt::format("gpus {}", times * plan.gpus), [=](TrainPlan& p) { p.gpus *= times; });
  return edits;
}

// What the first word names: two changes of the same setting are one.
std::string_view setting_of(std::string_view what) { return what.substr(0, what.find(' ')); }

bool changes(std::string_view before, std::string_view setting) {
  for (size_t begin = 0; begin < before.size();) {
    if (setting_of(before.substr(begin)) == setting) return true;
    const size_t end = before.find("; ", begin);
    begin = end == std::string_view::npos ? before.size() : end + 2;
  }
  return false;
}

// One edit more for each of `edits`, in the order of the settings' names, so that none comes twice.
std::vector<Edit> extend(const std::vector<Edit>& edits) {
  std::vector<Edit> longer;
  for (const Edit& edit : edits) {
    for (Edit& next : single_edits(edit.plan)) {
      const std::string_view setting = setting_of(next.what);
      if (changes(edit.what, setting)) continue;
      const size_t last = edit.what.rfind("; ");
      const std::string_view before =
          last == std::string::npos ? edit.what : std::string_view(edit.what).substr(last + 2);
      if (!before.empty() && setting_of(before) > setting) continue;
      if (!edit.what.empty()) next.what = edit.what + "; " + next.what;
      longer.push_back(std::move(next));
    }
  }
  return longer;
}

}  // namespace

SearchSpace full_space(const TrainCase& base, uint64_t global_batch) {
  SearchSpace space{
      .global_batch = global_batch,
      .stages = {0, 1, 2, 3},
      .interleaves = {1, 2, 4},
      .recomputes = {Recompute::kNone, Recompute::kSelective, Recompute::kFull},
      .offloads = {StateOffload::kNone, StateOffload::kOptimizer, StateOffload::kAll}};
  for (int tensor = 1; tensor <= std::min(8, base.hardware->links.gpus_per_domain); tensor *= 2)
    space.tensors.push_back(tensor);
  for (int pipeline = 1; pipeline <= 16; pipeline *= 2) space.pipelines.push_back(pipeline);
  return space;
}

Candidate evaluate(const TrainCase& question) {
  return {question.plan, predict_memory(question).total(), predict_time(question).seconds()};
}

SearchResult search_plans(const TrainCase& base, const SearchSpace& space, uint64_t limit_bytes) {
  SearchResult result;
  std::vector<Candidate> fitting;
  Walk walk(base, space, [&](const TrainCase& question) {
    ++result.tried;
    const uint64_t bytes = predict_memory(question).total();
    if (bytes > limit_bytes) return;
    fitting.push_back({question.plan, bytes, predict_time(question).seconds()});
  });
  walk.cut_model();
  result.fitting = fitting.size();
  result.pareto = pareto_of(std::move(fitting));
  return result;
}

std::vector<Change> cheapest_changes(const TrainCase& question, uint64_t limit_bytes, size_t most) {
  std::vector<Change> changes;
  std::vector<Edit> edits = {{"", question.plan}};
  for (int depth = 1; depth <= 3 && changes.size() < most; ++depth) {
    edits = extend(edits);
    std::vector<Change> found;
    for (const Edit& edit : edits) {
      TrainCase changed = question;
      changed.plan = edit.plan;
      if (!is_possible(changed)) continue;
      const Candidate candidate = evaluate(changed);
      if (candidate.bytes <= limit_bytes) found.push_back({edit.what, candidate});
    }
    std::ranges::sort(found, {}, [](const Change& change) { return change.result.seconds; });
    const size_t room = most - changes.size();
    for (size_t i = 0; i < std::min(room, found.size()); ++i)
      changes.push_back(std::move(found[i]));
  }
  std::ranges::sort(changes, {}, [](const Change& change) { return change.result.seconds; });
  return changes;
}

}  // namespace gxp
