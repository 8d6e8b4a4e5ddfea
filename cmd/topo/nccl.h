// NCCL's rules over one host, for the actions of `gxp topo` that ask about paths.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "lib/topo/model/host_tree.h"
#include "lib/topo/nccl/nccl_routes.h"

namespace gxp {

// --nccl NAME=VALUE, again and again.
void add_nccl_option(CLI::App& app, std::vector<std::string>& variables);

// A host with its paths and routes, which refer to it.
struct NcclHost {
  // Errors as load_host(); kUsage: set_nccl_variable() refuses a variable.
  NcclHost(const std::string& from, const std::vector<std::string>& variables);
  NcclHost(const NcclHost&) = delete;
  NcclHost& operator=(const NcclHost&) = delete;

  HostTree host;
  NcclPaths paths;
  NcclRoutes routes;
};

}  // namespace gxp
