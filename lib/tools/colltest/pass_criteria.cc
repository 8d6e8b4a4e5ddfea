#include "lib/tools/colltest/pass_criteria.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/text_file.h"
#include "lib/tools/colltest/totals.h"

namespace gxp {
namespace {

constexpr size_t kMaxBaselineBytes = 64u << 20;

using Json = nlohmann::json;

// The case, as both sides can say it: "all_reduce 64 MiB f32 sum", "broadcast 8 B f32 from rank 0".
std::string name_of(const std::string& op, uint64_t size, const std::string& dtype,
                    const std::string& redop, std::optional<int64_t> root) {
  std::string name = fmt::format("{} {} B {}", op, size, dtype);
  if (!redop.empty()) name += " " + redop;
  if (root) name += fmt::format(", root {}", *root);
  return name;
}

std::string name_of(const BenchCase& bench) {
  const BenchOperation& operation = *bench.operation;
  std::optional<int64_t> root;
  if (has_root(operation)) root = bench.root;
  return name_of(std::string(operation.name), bench.size_bytes(),
                 moves_data(operation) ? std::string(to_string(bench.dtype)) : "",
                 reduces(operation) ? std::string(to_string(bench.redop)) : "", root);
}

std::string text_or_empty(const Json& value) { return value.is_null() ? "" : value; }

std::optional<double> time_of(const Json& half) {
  const Json& time = half.at("time_us");
  return time.is_null() ? std::nullopt : std::optional<double>(time.get<double>());
}

std::string name_of(const Json& row) {
  std::optional<int64_t> root;
  if (!row.at("root").is_null()) root = row.at("root").get<int64_t>();
  return name_of(row.at("op"), row.at("size"), text_or_empty(row.at("type")),
                 text_or_empty(row.at("redop")), root);
}

std::string slower_line(const std::string& name, const char* half, double now_us, double then_us) {
  return fmt::format("{}, {}: {:.2f} us, {:.0f}% more than {:.2f} us", name, half, now_us,
                     100 * (now_us / then_us - 1), then_us);
}

// "" if the operation is fast enough, or was not run.
std::string low_bandwidth(const BenchOperation& operation, const PassCriteria& criteria,
                          int world_size, std::span<const CaseResult> results) {
  std::vector<CaseResult> own;
  std::ranges::copy_if(results, std::back_inserter(own), [&](const CaseResult& result) {
    return result.bench.operation == &operation && moves_data(operation);
  });
  const double busbw = totals_of(own, world_size, criteria.average).busbw;
  if (own.empty() || busbw >= 0.9 * *criteria.min_busbw) return "";
  return fmt::format("the average bus bandwidth of {} is {:.4g} GB/s, below 90% of {:.4g}",
                     operation.name, busbw, *criteria.min_busbw);
}

}  // namespace

Baseline::Baseline(const std::string& path) : path_(path) {
  const std::string text = read_text_file(path, kMaxBaselineBytes, "baseline");
  try {
    const Json report = Json::parse(text);
    world_size_ = report.at("world_size");
    memory_ = report.at("memory");
    device_ = report.value("device", "cpu");  // older results have none
    for (const Json& row : report.at("results"))
      rows_[name_of(row)] = {time_of(row.at("out_of_place")), time_of(row.at("in_place"))};
  } catch (const Json::exception& error) {
    fail(ErrorKind::kCorrupt,
         "read baseline {}: not a result of gxp allreduce-test --format json ({})", path,
         error.what());
  }
}

void Baseline::check_comparable(const RunFacts& facts, std::span<const BenchCase> cases) const {
  if (world_size_ != facts.world_size) {
    fail(ErrorKind::kUsage, "--baseline {}: it was run with {} ranks, this with {}", path_,
         world_size_, facts.world_size);
  }
  if (memory_ != facts.memory) {
    fail(ErrorKind::kUsage, "--baseline {}: it was run with {} memory, this with {} memory", path_,
         memory_, facts.memory);
  }
  if (device_ != facts.device) {
    fail(ErrorKind::kUsage, "--baseline {}: it was run with --device {}, this with {}", path_,
         device_, facts.device);
  }
  for (const BenchCase& bench : cases) {
    if (rows_.contains(name_of(bench))) return;
  }
  fail(ErrorKind::kUsage, "--baseline {}: it has none of the rows of this run", path_);
}

std::vector<std::string> Baseline::slower(std::span<const CaseResult> results,
                                          double tolerance) const {
  std::vector<std::string> lines;
  const auto compare = [&](const std::string& name, const char* half, const PlacementResult& now,
                           const std::optional<double>& then_us) {
    const double now_us = now.slowest.median * 1e6;
    if (then_us && *then_us > 0 && now_us > (1 + tolerance) * *then_us)
      lines.push_back(slower_line(name, half, now_us, *then_us));
  };
  for (const CaseResult& result : results) {
    const std::string name = name_of(result.bench);
    const auto row = rows_.find(name);
    if (row == rows_.end()) continue;
    compare(name, "out of place", result.out_of_place, row->second.out_of_place_us);
    if (result.in_place) compare(name, "in place", *result.in_place, row->second.in_place_us);
  }
  return lines;
}

std::vector<std::string> violations(const PassCriteria& criteria, const RunFacts& facts,
                                    std::span<const CaseResult> results) {
  std::vector<std::string> lines;
  const Totals totals = totals_of(results, facts.world_size);
  if (totals.wrong > 0) lines.push_back(fmt::format("{} wrong elements", totals.wrong));
  if (totals.out_of_bounds > 0) {
    lines.push_back(
        fmt::format("{} words outside of the given memory were overwritten", totals.out_of_bounds));
  }
  if (criteria.min_busbw) {
    for (const BenchOperation& operation : operations()) {
      const std::string line = low_bandwidth(operation, criteria, facts.world_size, results);
      if (!line.empty()) lines.push_back(line);
    }
  }
  if (criteria.baseline == nullptr) return lines;
  for (std::string& line : criteria.baseline->slower(results, criteria.tolerance))
    lines.push_back(std::move(line));
  return lines;
}

std::optional<double> parse_percentage(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || !(value >= 0) || !std::isfinite(value)) return std::nullopt;
  if (const std::string unit(rest, end); !unit.empty() && unit != "%") return std::nullopt;
  return value / 100;
}

}  // namespace gxp
