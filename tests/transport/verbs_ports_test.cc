#include "lib/transport/verbs/verbs_ports.h"

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/error_of.h"

using namespace gxp;

namespace {

VerbsPort port_called(const std::string& name, uint32_t number = 1) {
  VerbsPort port{.port = number};
  name.copy(port.device.data(), port.device.size() - 1);
  port.gids[size_t(GidKind::kIpv4)].index = 0;
  return port;
}

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

TEST_CASE("ports of equal names pair first, and both ends see the same rails", "[verbs_ports]") {
  const VerbsOffer mine{.ports = {port_called("mlx5_3"), port_called("mlx5_1"), port_called("a0"),
                                  port_called("mlx5_1", 2)}};
  const VerbsOffer peers{
      .ports = {port_called("mlx5_1", 2), port_called("b0"), port_called("mlx5_3")}};
  const auto rails = rails_between(mine, peers);
  const auto theirs = rails_between(peers, mine);
  REQUIRE(rails.size() == 3);
  REQUIRE(theirs.size() == 3);
  std::string text;
  for (size_t i = 0; i < 3; ++i) {
    CHECK((rails[i].mine == theirs[i].peers && rails[i].peers == theirs[i].mine));
    text += fmt::format("{} to {}; ", to_string(mine.ports[rails[i].mine]),
                        to_string(peers.ports[rails[i].peers]));
  }
  CHECK(text ==
        "mlx5_1 port 2 to mlx5_1 port 2; mlx5_3 port 1 to mlx5_3 port 1; "
        "mlx5_1 port 1 to b0 port 1; ");
}

TEST_CASE("ranks of a host share its ports evenly", "[verbs_ports]") {
  std::vector<VerbsPort> four(4);
  for (uint32_t i = 0; i < 4; ++i) four[i].port = i;
  CHECK(share_of_ports(four, {0, 1}).size() == 4);
  CHECK(share_of_ports(four, {1, 2}).at(0).port == 2);
  CHECK(share_of_ports(four, {5, 8}).at(0).port == 2);
  CHECK(share_of_ports(four, {5, 8}).size() == 1);
  CHECK(share_of_ports({}, {0, 1}).empty());
}

TEST_CASE("a rank takes the ports of its place, and else an even part of all", "[verbs_ports]") {
  const std::vector<VerbsPort> all{port_called("mlx5_0"), port_called("mlx5_1"),
                                   port_called("mlx5_2"), port_called("mlx5_3")};
  const auto names = [&](const VerbsPlace& place) {
    const VerbsOffer offer = place_on_ports(all, place, {1, 2}, {3, 4});
    std::string text;
    for (const VerbsPort& port : offer.ports) text += std::string(port.device.data()) + " ";
    return text + offer.why;
  };
  CHECK(names({.ports = {"mlx5_2:1", "mlx5_0:1"}, .why = "near"}) == "mlx5_2 mlx5_0 near");
  CHECK(names({.ports = {"mlx5_0:1", "mlx5_1:1"}, .why = "near", .shares = true}) == "mlx5_1 near");
  CHECK(names({.why = "nobody knows"}) ==
        "mlx5_3 an even part for each rank of the host (nobody knows)");
  CHECK(names({.ports = {"mlx5_9:1"}, .why = "near"}) ==
        "mlx5_3 an even part for each rank of the host (mlx5_9:1, near, cannot be used)");
}

TEST_CASE("an offer is read as it was written, and nothing else is", "[verbs_ports]") {
  VerbsOffer offer{.ports = {port_with({GidKind::kIpv6}), port_with({GidKind::kIpv4})}};
  offer.ports[1].lid = 77;
  offer.why = "nearest";
  CHECK(parse_verbs_offer(to_bytes(offer)).why == "nearest");
  CHECK(parse_verbs_offer(to_bytes(offer)).ports.at(1).lid == 77);
  CHECK(parse_verbs_offer(to_bytes({.obstacle = "has none"})).obstacle == "has none");
  for (const std::string bad : {"", "p", "x", "pshort", "pwhy\0short"})
    CHECK_THROWS_AS(parse_verbs_offer(bad), Error);
}
