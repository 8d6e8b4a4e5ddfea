#include "cmd/topo/nccl.h"

#include "lib/base/error.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

NcclSettings settings_of(const std::vector<std::string>& variables) {
  NcclSettings settings;
  for (const std::string& variable : variables) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos)
      fail(ErrorKind::kUsage, "--nccl {}: must be NAME=VALUE, such as NCCL_P2P_LEVEL=PHB",
           variable);
    set_nccl_variable(settings, variable.substr(0, equals), variable.substr(equals + 1));
  }
  return settings;
}

}  // namespace

void add_nccl_option(CLI::App& app, std::vector<std::string>& variables) {
  app.add_option("--nccl", variables,
                 "NCCL variable that affects paths; may be repeated. One of NCCL_P2P_LEVEL, "
                 "NCCL_P2P_DISABLE, NCCL_NET_GDR_LEVEL, NCCL_NET_GDR_READ, NCCL_NET_GDR_C2C, "
                 "NCCL_PXN_DISABLE, NCCL_PXN_C2C. The environment is not read")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

NcclHost::NcclHost(const std::string& from, const std::vector<std::string>& variables)
    : host(load_host(from)), paths(host), routes(paths, settings_of(variables)) {}

}  // namespace gxp
