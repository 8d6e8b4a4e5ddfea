// Regular hosts as the simulator takes them, for tests.
#pragma once

#include "lib/tools/topology/model/host.h"

namespace gxp {

struct RegularHost {
  int gpus = 1;
  int nics = 0;
  int numa_nodes = 1;
  double pcie_gb_per_s = 0;
  double nvlink_gb_per_s = 0;
  double inter_numa_gb_per_s = 0;
  LinkLatencies latencies{};
};

HostTopology make_host(const RegularHost& host);

}  // namespace gxp
