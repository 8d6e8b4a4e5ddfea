// gxp memcalc MODEL --solve.
#include <algorithm>
#include <optional>

#include "cmd/memcalc/report.h"
#include "lib/estimate/find_largest.h"

namespace gxp {

void add_least_gpus(Report& report, const std::vector<EstimateQuestion>& questions,
                    const MemcalcView& view) {
  Table& results = report.add_table(
      "results", {{"stage"}, {"gpus"}, bytes_column("total_bytes", "total", view.unit), {"fits"}});
  for (EstimateQuestion question : questions) {
    const std::optional<int> gpus = least_gpus(question, *view.limit_bytes);
    question.placement.gpus = gpus.value_or(most_gpus(question));
    results.add_row({int64_t{question.placement.stage}, gpus ? Cell(int64_t{*gpus}) : Cell(),
                     int64_t(estimate(question).total()), gpus.has_value()});
  }
}

void add_most(Report& report, const EstimateQuantity& quantity,
              const std::vector<EstimateQuestion>& questions, const MemcalcView& view) {
  Table& results =
      report.add_table("results", {{"gpus"},
                                   {"stage"},
                                   {"option"},
                                   {"value", "largest"},
                                   bytes_column("total_bytes", "total", view.unit),
                                   bytes_column("next_total_bytes", "with one more", view.unit),
                                   {"binding", "most of it"}});
  for (const EstimateQuestion& question : questions) {
    const auto with = [&](int value) {
      EstimateQuestion other = question;
      quantity.set(other, value);
      return estimate(other);
    };
    const Largest largest =
        find_largest([&](int value) { return with(value).total(); }, *view.limit_bytes,
                     quantity.least(question), quantity.most);
    const Estimate next = with(std::max(largest.value + 1, quantity.least(question)));
    const bool found = largest.value > 0;
    results.add_row({int64_t{question.placement.gpus}, int64_t{question.placement.stage},
                     std::string(quantity.option), found ? Cell(int64_t{largest.value}) : Cell(),
                     found ? Cell(int64_t(largest.bytes)) : Cell(), int64_t(next.total()),
                     std::string(next.binding())});
  }
}

}  // namespace gxp
