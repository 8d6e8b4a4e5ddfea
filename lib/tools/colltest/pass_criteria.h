// Criteria by which a completed run fails: wrong values, too little bandwidth, rows that are slower
// than in an earlier run.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/tools/colltest/result.h"
#include "lib/tools/colltest/result_report.h"

namespace gxp {

// The times of an earlier run, from the JSON that to_report() gives.
class Baseline {
 public:
  // Errors: kIo; kCorrupt, not such a JSON.
  explicit Baseline(const std::string& path);

  // Throws kUsage if the run was made with other ranks, memory or devices, or has none of the rows:
  // the comparison would say nothing.
  void check_comparable(const RunFacts& facts, std::span<const BenchCase> cases) const;
  // One line for each placement of a row that takes more than 1 + tolerance times as long as in the
  // earlier run. Rows that the earlier run does not have are passed over.
  [[nodiscard]] std::vector<std::string> slower(std::span<const CaseResult> results,
                                                double tolerance) const;

 private:
  struct Times {
    std::optional<double> out_of_place_us, in_place_us;
  };
  std::string path_;
  int world_size_ = 0;
  std::string memory_;
  std::string device_;
  std::map<std::string, Times> rows_;  // by operation, type, reduction, root and size
};

struct PassCriteria {
  // GB/s, the average of each operation; as with NCCL_TESTS_MIN_BW, 10% below it still pass.
  std::optional<double> min_busbw;
  Average average = Average::kMax;  // by whose time
  const Baseline* baseline = nullptr;
  double tolerance = 0.15;
};

// Everything that is wrong with the run, a line each; empty: it passes.
std::vector<std::string> violations(const PassCriteria& criteria, const RunFacts& facts,
                                    std::span<const CaseResult> results);

// "15%" or "15": 0.15. Nothing if it is not a percentage from 0 up.
std::optional<double> parse_percentage(const std::string& text);

}  // namespace gxp
