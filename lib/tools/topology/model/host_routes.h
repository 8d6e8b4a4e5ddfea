// The input of plans: the directed links of one host with their bandwidths, and the links that
// traffic takes between its GPUs and NICs.
//
// Places: GPU i is place i, NIC j is place gpus() + j. Routes share the bandwidth of a common link.
// A route from or to a NIC includes the NIC's link to the network, if it has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/tools/topology/model/host.h"
#include "lib/topo/model/path_type.h"

namespace gxp {

struct HostRoute {
  std::vector<uint32_t> links{};  // from the first place on; all differ
  PathType type = PathType::kLoc;
  bool exists = false;
};

class HostRoutes {
 public:
  struct Link {
    std::string name{};
    double gb_per_s = 0;
  };

  HostRoutes(int gpus, int nics);

  uint32_t add_link(std::string name, double gb_per_s);
  void set(int from, int to, HostRoute route);
  void set_name(int place, std::string name);  // "GPU 3", "NIC 0" at first

  [[nodiscard]] int gpus() const { return gpus_; }
  [[nodiscard]] int nics() const { return nics_; }
  [[nodiscard]] int places() const { return gpus_ + nics_; }
  [[nodiscard]] int place_of_nic(int nic) const { return gpus_ + nic; }
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] const std::string& name(int place) const {
    return names_[static_cast<size_t>(place)];
  }
  [[nodiscard]] const HostRoute& route(int from, int to) const {
    return routes_[static_cast<size_t>(from) * static_cast<size_t>(places()) +
                   static_cast<size_t>(to)];
  }

 private:
  int gpus_;
  int nics_;
  std::vector<Link> links_;
  std::vector<HostRoute> routes_;
  std::vector<std::string> names_;
};

// The widest paths (find_paths), which need not be those that NCCL takes; their types are NVL, PIX,
// PXB, PHB and SYS.
HostRoutes host_routes(const HostTopology& host);

}  // namespace gxp
