// `gxp topo show --rank N`: what a rank has, and how it reaches the others.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "lib/report/report.h"

namespace gxp {

struct TopoRankOptions {
  int rank = -1;  // none was asked for
  int hosts = 0;  // 0: those of the topology
};

// --rank and --hosts. Returns the former.
CLI::Option* add_rank_options(CLI::App& app, TopoRankOptions& options);

// Of what --from names; of this host as the CUDA driver would show its GPUs to ranks. Returns the
// exit code.
int print_rank(const TopoRankOptions& options, const std::string& from, Format format);

}  // namespace gxp
