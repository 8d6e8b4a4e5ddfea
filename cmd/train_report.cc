#include "cmd/train_report.h"

#include <optional>

#include "lib/base/error.h"
#include "lib/base/log.h"

namespace gxp {
namespace {

Report make_report(const RunSummary& summary, int world_size) {
  Report report{.schema = "gxp.train/1"};
  const auto optional = [](const std::optional<double>& value) {
    return value ? Cell(*value) : Cell();
  };
  report.facts = {
      {{"steps"}, summary.steps},
      {{"parameters"}, int64_t(summary.parameters)},
      {{"world_size"}, int64_t{world_size}},
      {{"loss", "last loss"}, optional(summary.loss)},
      {{"valid_loss_start", "validation loss, start"}, optional(summary.valid_start)},
      {{"valid_loss", "validation loss, end"}, optional(summary.valid_end)},
      {{"tokens_per_s", "tokens/s (median step)"}, summary.tokens_per_s},
      {{"seconds", "seconds of all steps"}, summary.seconds},
      {{"peak_bytes", "peak memory of rank 0", Style::kBytes}, int64_t(summary.peak_bytes)}};
  if (!summary.generated.empty())
    report.facts.push_back({{"generated", "generated text", Style::kLines}, summary.generated});
  return report;
}

}  // namespace

void print_result(const RunSummary& summary, int world_size, Format format) {
  try {
    print(make_report(summary, world_size), format);
  } catch (const Error& error) {
    if (summary.signal == 0) throw;
    log_warn("{}", error.what());
  }
  if (!summary.metrics_error.empty()) fail(ErrorKind::kIo, "{}", summary.metrics_error);
}

}  // namespace gxp
