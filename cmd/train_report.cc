#include "cmd/train_report.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"

namespace gxp {
namespace {

void print_report(Report report, const Tokens& generated, const TrainPrinting& how) {
  if (how.format != Format::kText && !generated.empty()) {
    if (how.tokenizer != nullptr)
      report.facts.push_back({{"generated", "generated text"}, how.tokenizer->decode(generated)});
    report.facts.push_back({{"generated_ids", "generated token ids"},
                            std::vector<int64_t>(generated.begin(), generated.end())});
  }
  print(report, how.format);
}

Report make_report(const RunSummary& summary, int world_size) {
  Report report{.schema = "gxp.train/1"};
  report.facts = {
      {{"steps"}, summary.steps},
      {{"parameters"}, int64_t(summary.parameters)},
      {{"world_size"}, int64_t{world_size}},
      {{"loss", "last loss"}, to_cell(summary.loss)},
      {{"valid_loss_start", "validation loss, start"}, to_cell(summary.valid_start)},
      {{"valid_loss", "validation loss, end"}, to_cell(summary.valid_end)},
      {{"tokens_per_s", "tokens/s (median step)"}, summary.tokens_per_s},
      {{"seconds", "seconds of all steps"}, summary.seconds},
      {{"peak_bytes", "peak memory of rank 0", Style::kBytes}, int64_t(summary.peak_bytes)}};
  return report;
}

Report make_report(const ModelView& view, const TrainPrinting& how) {
  Report report{.schema = "gxp.train-evaluation/1"};
  if (view.loss) {
    const double loss = view.loss->mean(), bits = loss / std::numbers::ln2;
    report.facts = {{{"valid_loss", "validation loss"}, loss},
                    {{"perplexity"}, std::exp(loss)},
                    how.of_bytes ? Fact{{"bits_per_byte", "bits per byte"}, bits}
                                 : Fact{{"bits_per_token", "bits per token"}, bits},
                    {{"tokens", "validation tokens"}, int64_t(view.loss->targets)}};
  }
  report.facts.push_back({{"step", "step of the checkpoint"}, to_cell(view.step)});
  report.facts.push_back({{"parameters"}, int64_t(view.parameters)});
  report.facts.push_back({{"world_size"}, int64_t{how.world_size}});
  return report;
}

}  // namespace

void print_result(const RunSummary& summary, const TrainPrinting& how) {
  try {
    print_report(make_report(summary, how.world_size), summary.generated, how);
  } catch (const Error& error) {
    if (summary.signal == 0) throw;
    log_warn("{}", error.what());
  }
  if (!summary.metrics_error.empty()) fail(ErrorKind::kIo, "{}", summary.metrics_error);
}

void print_view(const ModelView& view, const TrainPrinting& how) {
  if (how.format == Format::kText && !view.loss) return;  // the text has come already
  print_report(make_report(view, how), view.generated, how);
}

}  // namespace gxp
