#include <algorithm>

#include "lib/transport/verbs/verbs.h"
#include "lib/transport/verbs/verbs_find.h"

namespace gxp {

namespace {

VerbsOffer own_offer(const TransportContext& context) {
  if (context.tcp.protect != Protection::kNone)
    return {.obstacle = fmt::format("is to protect what it sends (comm.protect = \"{}\"), which "
                                    "RDMA cannot do; \"none\" trusts the network",
                                    to_string(context.tcp.protect))};
  const auto& hosts = context.hosts;
  const auto me = hosts.begin() + context.rank;
  return find_verbs_ports(context.verbs_options, int(std::count(hosts.begin(), me, context.host)),
                          int(std::ranges::count(hosts, context.host)));
}

// A row joins all ranks of a host or none: what one of them lacks, they all do.
void level_hosts(const Hosts& hosts, std::vector<VerbsOffer>& offers) {
  for (size_t rank = 0; rank < offers.size(); ++rank) {
    if (!offers[rank].ports.empty()) continue;
    for (size_t other = 0; other < offers.size(); ++other) {
      if (hosts[other] == hosts[rank] && !offers[other].ports.empty())
        offers[other] = {.obstacle = fmt::format("shares its host with rank {}, which {}", rank,
                                                 offers[rank].obstacle)};
    }
  }
}

}  // namespace

void survey_verbs(TransportContext& context) {
  context.verbs.clear();
  const auto all =
      context.store->gather("verbs ports", to_bytes(own_offer(context)), context.deadline);
  for (const std::string& bytes : all) context.verbs.push_back(parse_verbs_offer(bytes));
  level_hosts(context.hosts, context.verbs);
}

Reach verbs_reaches(const TransportContext& context, int a, int b) {
  if (context.verbs_planned) return {true, "planned"};
  if (context.verbs.empty()) return {false, "have not been asked for their RDMA ports"};
  for (const int rank : {a, b}) {
    const VerbsOffer& offer = context.verbs[size_t(rank)];
    if (offer.ports.empty())
      return {false, fmt::format("cannot use RDMA: rank {} {}", rank, offer.obstacle)};
  }
  const VerbsOffer& mine = context.verbs[size_t(a)];
  const auto rails = rails_between(mine, context.verbs[size_t(b)]);
  if (rails.empty())
    return {false,
            "have no RDMA ports that speak to each other (InfiniBand and RoCE, or addresses "
            "of different kinds)"};
  const VerbsPort& port = mine.ports[rails[0].mine];
  return {true, fmt::format("{} on {} (connections to each peer: {}, ports: {})",
                            port.ethernet ? "RoCE" : "InfiniBand", to_string(port),
                            lanes_between(mine, context.verbs[size_t(b)]), rails.size())};
}

}  // namespace gxp
