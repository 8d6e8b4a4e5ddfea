#include "lib/train/progress.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace gxp {

std::string format_duration(double seconds) {
  const auto total = int64_t(std::llround(seconds));
  if (total >= 3600) return fmt::format("{}h{:02}m", total / 3600, total / 60 % 60);
  if (total >= 60) return fmt::format("{}m{:02}s", total / 60, total % 60);
  return fmt::format("{}s", total);
}

std::string describe_mfu(const PeakRate& peak) {
  return fmt::format(
      "mfu: model FLOPs (6 per multiplied parameter and token, causal half of attention) over {}, "
      "{:.0f} GFLOP/s per rank",
      peak.source, peak.flops / 1e9);
}

std::string progress_line(const StepMetrics& metrics, int64_t total_steps, double seconds_per_step,
                          time_t now) {
  const StepResult& r = metrics.result;
  std::string line =
      fmt::format("step {}/{}  loss {:.4f}  norm {:.2f}  lr {:.2e}  {:.0f} tok/s", r.step,
                  total_steps, r.loss, r.grad_norm, r.lr, double(r.tokens) / r.seconds);
  if (r.targets < r.tokens) line += fmt::format("  targets {} of {}", r.targets, r.tokens);
  if (std::ranges::any_of(metrics.epochs, [](double epochs) { return epochs > 1; }))
    line += fmt::format("  epoch {:.2f}", fmt::join(metrics.epochs, " "));
  if (metrics.mfu) line += fmt::format("  mfu {:.1f}%", 100 * *metrics.mfu);
  if (metrics.valid_loss) line += fmt::format("  valid {:.4f}", *metrics.valid_loss);
  const double left = double(total_steps - r.step) * seconds_per_step;
  return line + fmt::format("  eta {}  {:%T}", format_duration(left), fmt::localtime(now));
}

std::string describe_trained(const Architecture& architecture) {
  size_t trained = 0;
  for (const UnitSpec& unit : architecture.units) trained += unit.trainable_count();
  return trained == architecture.parameter_count()
             ? ""
             : fmt::format(" ({:.2f} M trained)", double(trained) / 1e6);
}

std::string describe_codec(const std::string& codec, int hosts) {
  if (hosts > 1)
    return fmt::format("gradients travel in {} between {} hosts, with error feedback", codec,
                       hosts);
  return fmt::format("comm.codec {}: all ranks are on one host, within which nothing is compressed",
                     codec);
}

std::string describe_gather_codec(const std::string& codec, const RankGroups& groups) {
  const int hosts = groups.hosts_of(RankGroup::kShards);
  if (hosts > 1)
    return fmt::format("a step's parameters are gathered in {} between {} hosts", codec, hosts);
  return fmt::format(
      "comm.gather_codec {}: shard groups lie within hosts, where nothing is compressed", codec);
}

}  // namespace gxp
