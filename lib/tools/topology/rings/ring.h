// A ring through the GPUs of one host, as a channel of a collective takes it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/tools/topology/model/host_routes.h"

namespace gxp {

struct Ring {
  int nic = -1;             // by which it enters and leaves the host; -1: it stays inside
  std::vector<int> gpus{};  // all, in their order; inside, the first follows on the last

  friend bool operator==(const Ring&, const Ring&) = default;
};

struct RingChannel {
  Ring ring{};
  double gb_per_s = 0;
};

// The places where rings may start: the NICs, or GPU 0 for rings that stay inside.
std::vector<int> starts_of_rings(const HostRoutes& routes, bool through_nics);
Ring make_ring(const HostRoutes& routes, int start, std::vector<int> gpus);
// The other way round.
Ring reversed(Ring ring);
// The links that the ring uses, each as often as it is used. Precondition: all its routes exist.
std::vector<uint32_t> links_of_ring(const HostRoutes& routes, const Ring& ring);
bool has_routes(const HostRoutes& routes, const Ring& ring);

}  // namespace gxp
