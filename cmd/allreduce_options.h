// The command line of `gxp allreduce-test`: nccl-tests' flags, and gxp's own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/rank_context.h"
#include "lib/bench/gates.h"
#include "lib/bench/session.h"
#include "lib/report/report.h"

namespace gxp {

struct AllreduceOptions {
  std::string operation = "all_reduce";  // or "all"
  std::string dtype = "float";
  std::string redop = "sum";
  std::string root = "0";
  std::string memory = "ordinary";
  Sweep sweep;
  SessionOptions session;              // as far as its own flags go
  std::vector<std::string> comm_sets;  // "comm.transport=tcp"
  bool deterministic = false;
  LaunchRequest launch;
  std::optional<double> min_busbw;
  std::string baseline;  // file names; "": none
  double tolerance = 0.15;
  std::string output_file;
  bool explain = false;
  std::string svg;
  Format format = Format::kText;
};

// Declares all options.
void define_options(CLI::App& app, AllreduceOptions& options);

// What the words of --op, --datatype, --redop and --root mean. Throws kUsage, with a near match.
CaseRequest case_request(const AllreduceOptions& options);

// How the ranks join: all options that were given, and all of [comm], must be alike.
JobSettings job_settings(const AllreduceOptions& options, const CLI::App& app,
                         const CommConfig& comm);

// The session's options with what others say about it.
SessionOptions session_options(const AllreduceOptions& options);

}  // namespace gxp
