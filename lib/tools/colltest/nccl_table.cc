#include "lib/tools/colltest/nccl_table.h"

#include <fmt/format.h>
#include <fmt/printf.h>

#include <algorithm>

#include "lib/tools/colltest/copy_rates.h"
#include "lib/tools/colltest/totals.h"

namespace gxp {
namespace {

// A number in `width` characters, with as many of two decimals as fit.
std::string fit(double value, int width) {
  for (const int decimals : {2, 1, 0}) {
    const std::string text = fmt::format("{:{}.{}f}", value, width, decimals);
    if (text.size() <= size_t(width)) return text;
  }
  return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

// The columns of one half, right-aligned as in the heads below.
std::string half_columns(const NcclTable& table, const CaseResult& result,
                         const PlacementResult* half) {
  std::string text;
  if (half == nullptr) {
    text = fmt::sprintf("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
    if (table.options.per_iteration)
      text += fmt::sprintf("  %7s  %7s  %7s  %7s", "N/A", "N/A", "N/A", "N/A");
    return text;
  }
  const double seconds = half->median_s_by_average[size_t(table.options.average)];
  const Bandwidth rate =
      bandwidth(*result.bench.operation, result.bench.size_bytes(), seconds, table.world_size);
  text = fmt::sprintf("  %7s  %6s  %6s", fit(seconds * 1e6, 7), fit(rate.algbw, 6),
                      fit(rate.busbw, 6));
  text += half->wrong ? fmt::sprintf("  %6g", double(*half->wrong)) : "     N/A";
  if (!table.options.per_iteration) return text;
  const Summary& times = half->slowest;
  return text + fmt::sprintf("  %7s  %7s  %7s  %7s", fit(times.min * 1e6, 7),
                             fit(times.max * 1e6, 7), fit(times.p99 * 1e6, 7),
                             fit(100 * times.deviation / times.mean, 7));
}

std::string head_line(const NcclTable& table, bool units) {
  std::string text =
      units ? fmt::sprintf("# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "")
            : fmt::sprintf("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
  for (int half = 0; half < 2; ++half) {
    text += units ? fmt::sprintf("  %7s  %6s  %6s  %6s", "(us)", "(GB/s)", "(GB/s)", "")
                  : fmt::sprintf("  %7s  %6s  %6s  %6s", "time", "algbw", "busbw", "#wrong");
    if (!table.options.per_iteration) continue;
    text += units ? fmt::sprintf("  %7s  %7s  %7s  %7s", "(us)", "(us)", "(us)", "(%)")
                  : fmt::sprintf("  %7s  %7s  %7s  %7s", "i_min", "i_max", "i_p99", "i_cv%");
  }
  text += fmt::sprintf(" %*s\n", table.options.timestamps ? 19 : 0,
                       !table.options.timestamps ? ""
                       : units                   ? "%Y-%m-%d %H:%M:%S"
                                                 : "timestamp");
  return text;
}

std::string middle_of_halves(const NcclTable& table) {
  const std::string front = fmt::sprintf("# %10s  %12s  %8s  %6s  %6s", "", "", "", "", "");
  const int width = table.options.per_iteration ? 69 : 33;
  return front + fmt::format("{:^{}}{:^{}}\n", "out-of-place", width, "in-place", width);
}

// `place`: among the ranks of its host, which counts as its device where it has no GPU.
std::string rank_line(const RankInfo& rank, size_t number, size_t place) {
  const size_t device = rank.gpu >= 0 ? size_t(rank.gpu) : place;
  const std::string bus(rank.gpu >= 0 ? rank.bus_id.data() : "0000:00:00");
  // As nccl-tests: without the PCIe function.
  return fmt::sprintf("#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n", number, 0,
                      rank.pid, rank.host.data(), device, bus.substr(0, bus.find('.')),
                      rank.processor.data());
}

std::string chosen(bool is_asked, int number) {
  return is_asked ? fmt::format("{}", number) : "auto";
}

std::string microseconds_text(double seconds) { return fmt::format("{:.2f}", seconds * 1e6); }

// "rank 3, by 4.10 us": who calls last, out of place.
std::string last_rank(const PlacementResult& half) {
  size_t last = 0;
  for (size_t rank = 1; rank < half.ranks.size(); ++rank) {
    if (half.ranks[rank].late_s > half.ranks[last].late_s) last = rank;
  }
  if (half.ranks.size() < 2 || !half.ranks[last].late_s) return "";
  return fmt::format("rank {}, by {} us", last, microseconds_text(*half.ranks[last].late_s));
}

std::string remark(const NcclTable& table, const CaseResult& result) {
  const PlacementResult& half = result.out_of_place;
  const BenchCase& bench = result.bench;
  std::string predicted = "", expected = "";
  if (result.predicted_s) {
    predicted = microseconds_text(*result.predicted_s);
    expected =
        fit(bandwidth(*bench.operation, bench.size_bytes(), *result.predicted_s, table.world_size)
                .busbw,
            6);
  }
  std::string interval;
  if (half.slowest.median_95)
    interval = fmt::format("{}..{}", microseconds_text(half.slowest.median_95->low),
                           microseconds_text(half.slowest.median_95->high));
  return fmt::sprintf("# %10d  %8s  %-18s %6d  %10s  %8s  %10s  %21s  %10s  %s\n",
                      bench.size_bytes(), nccl_name(bench.dtype), result.algorithm, half.iterations,
                      predicted, expected, microseconds_text(half.slowest.median), interval,
                      microseconds_text(half.slowest.p99), last_rank(half));
}

std::string share_text(const NcclTable& table, const CaseResult& result,
                       const PlacementResult& half) {
  const double share = copy_share(table.world_size, result.bench.size_bytes(), half.slowest.median,
                                  table.copy_bytes_per_s);
  return fmt::format("{:.1f}%", 100 * share);
}

// The all-reduces' share of the copies' rate; "" without any.
std::string copy_shares(const NcclTable& table, std::span<const CaseResult> results) {
  std::string lines;
  for (const CaseResult& result : results) {
    if (!has_copy_share(result) || table.copy_bytes_per_s <= 0) continue;
    lines +=
        fmt::sprintf("# %10d  %8s  %12s  %12s\n", result.bench.size_bytes(),
                     nccl_name(result.bench.dtype), share_text(table, result, result.out_of_place),
                     share_text(table, result, *result.in_place));
  }
  if (lines.empty()) return "";
  return fmt::sprintf(
             "#\n# The GPUs' copies would read and write 2 p K bytes (p = %d ranks of K bytes) at "
             "%.1f GB/s; the share of the time:\n# %10s  %8s  %12s  %12s\n",
             table.world_size, table.copy_bytes_per_s / 1e9, "size", "type", "out-of-place",
             "in-place") +
         lines;
}

}  // namespace

std::string nccl_head(const NcclTable& table, std::span<const RankInfo> ranks) {
  const bool by_factor = table.options.sweep.factor > 1;
  std::string text = fmt::format("# gxp allreduce-test: {}\n", table.summary);
  text += fmt::format("# Collective test starting: {}\n", table.operation);
  text += fmt::format(
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg "
      "iters: {} validation: {} graph: 0 unalign: {}\n#\n# Using devices\n",
      table.options.sweep.min_bytes, table.options.sweep.max_bytes,
      by_factor ? table.options.sweep.factor : table.options.sweep.step_bytes,
      by_factor ? "factor" : "bytes", chosen(table.options.warmup >= 0, table.options.warmup),
      chosen(table.options.iterations > 0, table.options.iterations), table.options.calls,
      table.options.checks, table.options.unalign);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto same_host = [&](const RankInfo& other) {
      return other.host_number == ranks[rank].host_number;
    };
    const auto place = std::ranges::count_if(ranks.first(rank), same_host);
    text += rank_line(ranks[rank], rank, size_t(place));
  }
  for (const std::string& note : table.notes) text += "# " + note + "\n";
  if (table.world_size == 1)
    text += "# One rank: no data cross a link, so the factor of most bus bandwidths is 0.\n";
  return text + "#\n" + middle_of_halves(table) + head_line(table, false) + head_line(table, true);
}

std::string nccl_row(const NcclTable& table, const CaseResult& result,
                     const std::string& timestamp) {
  const BenchCase& bench = result.bench;
  std::string text = fmt::sprintf("%12d  %12d  %8s  %6s  %6d", bench.size_bytes(),
                                  nccl_count(bench, table.world_size), nccl_name(bench.dtype),
                                  nccl_redop(bench), nccl_root(bench));
  text += half_columns(table, result, &result.out_of_place);
  text += half_columns(table, result, result.in_place ? &*result.in_place : nullptr);
  return text + (table.options.timestamps ? fmt::format("{:>21}\n", timestamp) : "\n");
}

std::string nccl_remarks(const NcclTable& table, std::span<const CaseResult> results) {
  std::string text = fmt::sprintf(
      "#\n# Out of place: what ran, predicted and measured times of the slowest rank in us, the "
      "predicted bus bandwidth in GB/s, the 95%% confidence interval of the median, who called "
      "last.\n"
      "# %10s  %8s  %-18s %6s  %10s  %8s  %10s  %21s  %10s  %s\n",
      "size", "type", "algorithm", "iters", "predicted", "(busbw)", "median", "interval", "p99",
      "last");
  for (const CaseResult& result : results) text += remark(table, result);
  return text + copy_shares(table, results) + "#\n";
}

std::string nccl_foot(const NcclTable& table, std::span<const CaseResult> results) {
  const std::optional<double> min_busbw = table.options.min_busbw;
  const Totals totals = totals_of(results, table.world_size, table.options.average);
  const uint64_t bad = totals.wrong + totals.out_of_bounds;
  std::string verdict;
  if (min_busbw) verdict = totals.busbw < 0.9 * *min_busbw ? "FAILED" : "OK";
  return fmt::sprintf("# %-20s : %d %s\n", "Out of bounds values", bad, bad > 0 ? "FAILED" : "OK") +
         fmt::sprintf("# %-20s : %g %s\n#\n", "Avg bus bandwidth", totals.busbw, verdict) +
         fmt::format("# Collective test concluded: {}\n#\n", table.operation);
}

}  // namespace gxp
