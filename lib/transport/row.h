// A row of the table of transports (table.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/transport/context.h"
#include "lib/transport/link.h"

namespace gxp {

// Whether a transport can connect two ranks, with the reason either way: "same host", "are on
// different hosts".
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
  // Links this rank with the peers that the row `joins` it with; may be null where there are none.
  // All ranks call it.
  std::unique_ptr<LinkGroup> (*connect)(const TransportContext& context, const JoinedPairs& joins);
  // Exchanges the facts that reaches() needs among all ranks, once their hosts are known; null: it
  // needs none. Called if the rows before do not join all ranks, so on all ranks or none.
  void (*survey)(TransportContext& context) = nullptr;
};

}  // namespace gxp
