// The order of hosts in which neighbours are near each other in the network, and what a ring over
// hosts in an order moves between switches.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gxp {

struct Topology;

// An order of all hosts in which the hosts below each switch follow each other, so that a ring
// enters and leaves each switch's hosts once. Switches and their hosts come in the order in which
// the topology first names them; a host on several rails comes with its first leaf switch. Hosts on
// no switch come last.
std::vector<size_t> order_hosts(const Topology& topology);

// The traffic of a ring over all hosts in an order, each of them sending to the next.
struct RingTraffic {
  // By switch: hops that leave its hosts for others, over its link to the switch above (with rails
  // the mean of the rails). As many arrive.
  std::vector<double> hops_up{};
  double hops_between_switches = 0;  // over all links between switches, upwards
  // The rate of each hop if all have the same, where a link between switches is the limit.
  double gb_per_s = 0;            // 0: no link between switches limits it
  std::optional<size_t> limit{};  // the switch below that link
};

RingTraffic traffic_of_ring(const Topology& topology, const std::vector<size_t>& order);

// One host a line, in that order, as launchers read it; with slots > 0 "name slots=8".
std::string to_hostfile(const Topology& topology, const std::vector<size_t>& order, int slots);

}  // namespace gxp
