// Results as nccl-tests prints them: what its users read and their parsers expect. Lines that begin
// with '#' are remarks; the others are rows of 13 columns, with -I of 21, with -S one more pair for
// date and time. Source: NVIDIA/nccl-tests 2.19, src/util.cu.
//
// What differs: a half that an operation does not have is N/A in all its columns; the footer counts
// wrong elements and overwritten guard words together; and between rows and footer stand remarks
// on which algorithm ran, its predicted and measured time, and the ranks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/tools/colltest/cases.h"
#include "lib/tools/colltest/result.h"

namespace gxp {

struct NcclTable {
  std::string operation{};  // "all_reduce"
  std::string summary{};    // of the ranks: "2 ranks over shm, ordinary memory"
  int world_size = 1;
  BenchOptions options{};
  std::vector<std::string> notes{};  // lines of the head: which memory calls work on, copies' rates
  double copy_bytes_per_s = 0;       // of all GPUs (copy_rates.h); 0: there are none
};

std::string nccl_head(const NcclTable& table, std::span<const RankInfo> ranks);
// `timestamp`: "2026-01-31 12:00:00"; ignored unless the table has them.
std::string nccl_row(const NcclTable& table, const CaseResult& result,
                     const std::string& timestamp);
// Remarks: what ran, what was predicted, which ranks were slow, and on GPUs the share of the
// copies' rate that all-reduces reach.
std::string nccl_remarks(const NcclTable& table, std::span<const CaseResult> results);
std::string nccl_foot(const NcclTable& table, std::span<const CaseResult> results);

}  // namespace gxp
