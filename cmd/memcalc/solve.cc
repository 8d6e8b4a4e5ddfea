// gxp memcalc MODEL --solve.
#include <algorithm>
#include <optional>

#include "cmd/memcalc/report.h"

namespace gxp {

void add_least_gpus(Report& report, const std::vector<TrainCase>& cases, const MemcalcView& view) {
  Table& results = report.add_table(
      "results", {{"stage"}, {"gpus"}, bytes_column("total_bytes", "total", view.unit), {"fits"}});
  for (TrainCase question : cases) {
    const std::optional<int> gpus = least_gpus(question, *view.limit_bytes);
    const int copy = question.plan.gpus / question.plan.replicas();
    question.plan.gpus = gpus.value_or(kMostGpus / copy * copy);
    results.add_row(question.plan.stage, gpus, predict_memory(question).total(), gpus.has_value());
  }
}

void add_most(Report& report, const Quantity<ModelPlan>& quantity,
              const std::vector<TrainCase>& cases, const MemcalcView& view) {
  Table& results =
      report.add_table("results", {{"gpus"},
                                   {"stage"},
                                   {"option"},
                                   {"value", "largest"},
                                   bytes_column("total_bytes", "total", view.unit),
                                   bytes_column("next_total_bytes", "with one more", view.unit),
                                   {"binding", "most of it"}});
  for (const TrainCase& question : cases) {
    const ModelPlan subject{*question.model, question.plan};
    const auto with = [&](int value) {
      ModelPlan other = subject;
      quantity.set(other, value);
      TrainCase larger = question;
      larger.model = &other.model;
      larger.plan = other.plan;
      return predict_memory(larger);
    };
    const int least = quantity.least(subject);
    const Largest largest = find_largest([&](int value) { return with(value).total(); },
                                         *view.limit_bytes, least, quantity.most);
    const PlanMemory next = with(std::max(largest.value + 1, least));
    const bool found = largest.value > 0;
    results.add_row(question.plan.gpus, question.plan.stage, quantity.setting,
                    found ? Cell(int64_t{largest.value}) : Cell(),
                    found ? Cell(int64_t(largest.bytes)) : Cell(), next.total(),
                    binding_part(next));
  }
}

}  // namespace gxp
