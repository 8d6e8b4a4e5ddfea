// The transports that a user can choose, and the choice.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "lib/base/error.h"
#include "lib/transport/context.h"
#include "lib/transport/transport.h"

namespace gxp {

struct TransportRow {
  std::string_view name;
  std::string_view summary;
  // Whether it can join all ranks, and why (not). The same answer on every rank.
  Support (*probe)(const TransportContext& context, const Hosts& hosts);
  std::unique_ptr<Transport> (*make)(const TransportContext& context, const Hosts& hosts);
};

// In order of preference.
std::span<const TransportRow> transport_rows();

// The ranks tell each other their hosts; then the row called `name`, or with "auto" the first that
// can serve, joins them. Rank 0 logs the choice: "transport: shm: same host". All ranks call it
// with the same name. inproc has no row: its ranks meet in an InprocWorld. Errors: kUsage, no such
// transport; kUnavailable, it cannot serve, with the reason; kPeer, a rank is lost, late (named) or
// cannot prove itself; kIo.
std::unique_ptr<Transport> make_transport(std::string_view name, const TransportContext& context);

}  // namespace gxp
