#include "lib/transport/verbs/verbs_ports.h"

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/error_of.h"

using namespace gxp;

namespace {

VerbsPort port_with(std::vector<GidKind> kinds, bool ethernet = true) {
  VerbsPort port{.ethernet = ethernet};
  for (const GidKind kind : kinds) port.gids[size_t(kind)].index = int(kind);
  return port;
}

}  // namespace

TEST_CASE("the kind of a GID is that of its address", "[verbs_ports]") {
  CHECK(kind_of_gid({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 7}) == GidKind::kIpv4);
  CHECK(kind_of_gid({0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 1}) == GidKind::kLinkLocal);
  CHECK(kind_of_gid({0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}) == GidKind::kIpv6);
  CHECK(kind_of_gid({}) == std::nullopt);
  CHECK(kind_of_gid({0xfe, 0x80}) == std::nullopt);
}

TEST_CASE("ports pair by number, by the best kind of address that both have", "[verbs_ports]") {
  const VerbsOffer mine{.ports = {port_with({GidKind::kIpv4, GidKind::kLinkLocal}),
                                  port_with({GidKind::kIpv6}, false), port_with({GidKind::kIpv6})}};
  const VerbsOffer peers{.ports = {port_with({GidKind::kIpv6, GidKind::kLinkLocal}),
                                   port_with({GidKind::kIpv6}, false),
                                   port_with({GidKind::kIpv4})}};
  const auto rails = rails_between(mine, peers);
  REQUIRE(rails.size() == 2);  // the third ones have no kind in common
  CHECK(rails[0].kind == GidKind::kLinkLocal);
  CHECK(rails[1].mine == 1);
  CHECK(lanes_between(mine, peers) == 2);
  CHECK(rails_between(mine, {.ports = {port_with({GidKind::kIpv4}, false)}}).empty());
}

TEST_CASE("ranks of a host share its ports evenly", "[verbs_ports]") {
  std::vector<VerbsPort> four(4);
  for (uint32_t i = 0; i < 4; ++i) four[i].port = i;
  CHECK(share_of_ports(four, 0, 1).size() == 4);
  CHECK(share_of_ports(four, 1, 2).at(0).port == 2);
  CHECK(share_of_ports(four, 5, 8).at(0).port == 2);
  CHECK(share_of_ports(four, 5, 8).size() == 1);
  CHECK(share_of_ports({}, 0, 1).empty());
}

TEST_CASE("an offer is read as it was written, and nothing else is", "[verbs_ports]") {
  VerbsOffer offer{.ports = {port_with({GidKind::kIpv6}), port_with({GidKind::kIpv4})}};
  offer.ports[1].lid = 77;
  CHECK(parse_verbs_offer(to_bytes(offer)).ports.at(1).lid == 77);
  CHECK(parse_verbs_offer(to_bytes({.obstacle = "has none"})).obstacle == "has none");
  for (const std::string bad : {"", "p", "x", "pshort"})
    CHECK_THROWS_AS(parse_verbs_offer(bad), Error);
}
