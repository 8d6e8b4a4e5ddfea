// The transports that a user can choose, and which of them joins each pair of ranks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/transport/context.h"
#include "lib/transport/row.h"
#include "lib/transport/transport.h"

namespace gxp {

// In order of preference.
std::span<const TransportRow> transport_rows();

// The rows that serve a job.
struct TransportChoice {
  struct Use {
    const TransportRow* row;
    std::string reason;  // "same host"
  };
  std::vector<Use> uses{};  // in the table's order
  std::string refusal{};    // why two ranks cannot be joined; "" if all can

  [[nodiscard]] std::string name() const;  // "shm", "shm+tcp"
  [[nodiscard]] bool shares_memory() const;
};

// For each pair of the ranks on context.hosts the row called `name`, or with "auto" the first that
// reaches; pure. A rank that is alone is paired with itself. Errors: kUsage, no such transport.
TransportChoice choose_transports(std::string_view name, const TransportContext& context);
// The same for a job that is only planned: on hosts that reach each other, with so many ranks each.
TransportChoice plan_transports(std::string_view name, int host_count, int ranks_per_host);

// The part of a transport's name ("shm+tcp") that connects ranks of one host, or of two.
std::string_view transport_of_pair(std::string_view name, bool one_host);
// Transports that can connect all ranks: "auto", and rows that reach all hosts.
std::vector<std::string> transports_for_all_hosts();

// The ranks exchange their hosts; then each pair is connected by the transport that
// choose_transports() selects. Rank 0 logs the choice: "transport: shm: same host". All ranks call
// it with the same name. Errors: kUsage, no such transport; kUnavailable, a pair cannot be joined,
// with the reason; kPeer, a rank is lost, late (named) or cannot prove itself; kIo.
std::unique_ptr<Transport> make_transport(std::string_view name, const TransportContext& context);
// Over TCP, between these pairs alone. Likewise.
std::unique_ptr<Transport> make_tcp_transport(const TransportContext& context,
                                              const JoinedPairs& joins);

}  // namespace gxp
