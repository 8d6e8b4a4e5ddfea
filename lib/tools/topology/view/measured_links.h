// Measurements between ranks, on the graph of the host that some of the ranks ran on.
#pragma once

#include <span>
#include <string>

#include "lib/report/report.h"

namespace gxp {

class HostTree;

struct MeasuredLink {
  int from = 0;  // ranks
  int to = 0;
  std::string from_host{};
  std::string to_host{};
  bool one_host = false;
  int from_cpu = -1;  // of the graph's host, where the rank ran; -1: it ran on another
  int to_cpu = -1;
  std::string transport{};
  double latency_s = 0;
  double gb_per_s = 0;
  std::string interface {};  // of the sending host, which carried it; "": none did
  double link_gb_per_s = 0;  // with headers; 0: no interface
};

// Adds to each part the measurements from it (Part::measured): from NUMA nodes within themselves
// and to one another, by transport, and from ports to other hosts; the slowest of several links. A
// note of the host names an interface that is not on the graph.
void put_on(HostTree& host, std::span<const MeasuredLink> links);

// measured[] of {from, to, ...}, a row each; from_part and to_part are ids of devices[]. Without
// `host`, the parts are not named.
Table table_of(std::span<const MeasuredLink> links, const HostTree* host);

}  // namespace gxp
