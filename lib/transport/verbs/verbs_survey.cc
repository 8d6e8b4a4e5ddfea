
#include <fmt/format.h>

#include <algorithm>

#include "lib/base/choice.h"
#include "lib/base/text/joined.h"
#include "lib/transport/verbs/verbs.h"
#include "lib/transport/verbs/verbs_context.h"
#include "lib/transport/verbs/verbs_find.h"

namespace gxp {

namespace {

std::string obstacle_of(const TransportContext& context) {
  if (context.tcp.protect == Protection::kNone) return "";
  return fmt::format(
      "must protect its traffic (comm.protect = \"{}\"), which RDMA cannot do; \"none\" trusts the "
      "network",
      Choice(context.tcp.protect));
}

VerbsSharer sharer_among(const TransportContext& context, const auto& shares_with) {
  VerbsSharer sharer{.index = 0, .count = 0};
  for (int rank = 0; rank < context.world_size; ++rank) {
    if (context.hosts[size_t(rank)] != context.host || !shares_with(rank)) continue;
    if (rank < context.rank) ++sharer.index;
    ++sharer.count;
  }
  return sharer;
}

// How this rank's NICs reach its GPU; the offer's line says why (not).
void judge_gpu(const TransportContext& context, const VerbsPlace& place, VerbsOffer& offer) {
  GpuDirectFacts facts = *place.gpu_direct;
  facts.nic_takes_dma_buf = std::ranges::all_of(offer.ports, &VerbsPort::takes_dma_buf);
  if (context.gpu != nullptr) facts.gpu_exports_dma_buf = context.gpu->exports_memory().ok;
  const bool near = !place.ports.empty() && is_named(offer.ports[0], place.ports[0]);
  if (facts.too_far.empty() && !near)
    facts.too_far =
        fmt::format("the distance from {} to the GPU is unknown", to_string(offer.ports[0]));
  const GpuDirectVerdict verdict = judge_gpu_direct(facts);
  offer.gpu = {verdict.method, place.needs_flush};
  offer.why += fmt::format("; GPUDirect RDMA {}: {}", verdict.is_on() ? "on" : "off", verdict.why);
}

// All ranks call it: those of a host tell each other their places.
VerbsOffer own_offer(const TransportContext& context) {
  VerbsOffer all{.obstacle = obstacle_of(context)};
  VerbsPlace place{.why = "the wiring is unknown"};
  const VerbsContext& verbs = verbs_of(context);
  if (all.obstacle.empty()) all = find_verbs_ports(verbs.options);
  if (!all.ports.empty() && verbs.place) place = verbs.place();
  const std::string mine = joined(place.ports, ",");
  const auto places = context.store->gather("verbs places", mine, context.deadline);
  if (all.ports.empty()) return all;
  VerbsOffer offer =
      place_on_ports(all.ports, place,
                     sharer_among(context, [&](int rank) { return places[size_t(rank)] == mine; }),
                     sharer_among(context, [](int) { return true; }));
  if (place.gpu_direct) judge_gpu(context, place, offer);
  return offer;
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
  std::vector<VerbsOffer>& offers = change_verbs(context).offers;
  offers.clear();
  const VerbsOffer mine = own_offer(context);
  const auto all = context.store->gather("verbs ports", to_bytes(mine), context.deadline);
  for (const std::string& bytes : all) offers.push_back(parse_verbs_offer(bytes));
  offers[size_t(context.rank)].gpu = mine.gpu;
  level_hosts(context.hosts, offers);
}

Reach verbs_reaches(const TransportContext& context, int a, int b) {
  const VerbsContext& verbs = verbs_of(context);
  if (verbs.planned) return {true, "planned"};
  if (verbs.offers.empty()) return {false, "have not been asked for their RDMA ports"};
  for (const int rank : {a, b}) {
    const VerbsOffer& offer = verbs.offers[size_t(rank)];
    if (offer.ports.empty())
      return {false, fmt::format("cannot use RDMA: rank {} {}", rank, offer.obstacle)};
  }
  const VerbsOffer& mine = verbs.offers[size_t(a)];
  const auto rails = rails_between(mine, verbs.offers[size_t(b)]);
  if (rails.empty())
    return {false,
            "have no compatible RDMA ports (InfiniBand and RoCE, or different kinds of addresses)"};
  const VerbsPort& port = mine.ports[rails[0].mine];
  return {true, fmt::format("{} on {} (connections to each peer: {}, ports: {}), {}",
                            port.ethernet ? "RoCE" : "InfiniBand", to_string(port),
                            lanes_between(mine, verbs.offers[size_t(b)]), rails.size(), mine.why)};
}

}  // namespace gxp
