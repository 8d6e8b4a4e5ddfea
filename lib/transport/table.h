// The transports that a user can choose, and which of them joins each pair of ranks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/transport/context.h"
#include "lib/transport/link.h"
#include "lib/transport/transport.h"

namespace gxp {

// Whether a row can join two ranks, and why (not): "same host", "are on different hosts".
struct Reach {
  bool joins = false;
  std::string reason{};
};

struct TransportRow {
  std::string_view name;
  std::string_view summary;
  // Whether the ranks that it joins also map each other's memory: Transport::shared_arena().
  bool shares_memory;
  // Looks at context.hosts, context.master_addr and what survey() filled alone, so the answer is
  // the same on every rank, and for all ranks of a host. A rank may be asked about itself.
  Reach (*reaches)(const TransportContext& context, int a, int b);
  // Links this rank with the peers that the row `joins` it with. All ranks call it.
  std::unique_ptr<LinkGroup> (*connect)(const TransportContext& context, const JoinedPairs& joins);
  // Lets all ranks tell each other what reaches() must know, once their hosts are known; null: it
  // needs no more. Called if the rows before do not join all ranks, so on all ranks or none.
  void (*survey)(TransportContext& context) = nullptr;
};

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

// The part of a transport's name ("shm+tcp") that joins ranks of one host, or of two.
std::string_view transport_of_pair(std::string_view name, bool one_host);
// Names with which ranks can be joined wherever they are: "auto", and rows that reach all hosts.
std::vector<std::string> transports_for_all_hosts();

// The ranks tell each other their hosts; then each pair is joined by the row that
// choose_transports() has for it. Rank 0 logs the choice: "transport: shm: same host". All ranks
// call it with the same name. Errors: kUsage, no such transport; kUnavailable, a pair cannot be
// joined, with the reason; kPeer, a rank is lost, late (named) or cannot prove itself; kIo.
std::unique_ptr<Transport> make_transport(std::string_view name, const TransportContext& context);

}  // namespace gxp
