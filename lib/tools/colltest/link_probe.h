// Measures latency and bandwidth between all pairs of ranks of a communicator.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gxp {

class Communicator;

struct ProbeOptions {
  double seconds = 0.5;  // of each direction of a pair, about
  // A message's size: many times the burst where a token bucket shapes messages.
  size_t message_bytes = size_t{4} << 20;
  bool only_within_hosts = false;  // pairs of ranks on one host
};

struct ProbedLink {
  int from = 0;
  int to = 0;
  double latency_s = 0;      // half a round trip of 8 bytes, the median
  double gb_per_s = 0;       // of payload, one way; the second best of the trials
  std::string interface {};  // of the sending host, which carried it; "": none did
  // With the headers of full TCP packets of the interface, IPv4 and Ethernet: what a link's rate is
  // compared with. 0: no interface.
  double link_gb_per_s = 0;
};

// One pair at a time, one direction at a time, so that no measurement disturbs another; N (N - 1) *
// `seconds` for N ranks. All ranks call it; the same on every rank, by `from`, then `to`.
// Memory: message_bytes. Errors: those of the communicator.
std::vector<ProbedLink> probe_links(Communicator& comm, const ProbeOptions& options);

}  // namespace gxp
