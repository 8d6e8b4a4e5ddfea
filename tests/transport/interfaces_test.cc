#include "lib/transport/tcp/interfaces.h"

#include <algorithm>
#include <string>

#include "lib/base/error.h"
#include "tests/catch.h"

using namespace gxp;

namespace {

const std::vector<Interface> kHost{
    {"lo", "127.0.0.1", true}, {"docker0", "172.17.0.1"}, {"eth0", "10.0.0.7"},
    {"eth0", "fd00::7"},       {"eth1", "10.1.0.7"},      {"eth10", "10.2.0.7"},
    {"ib0", "192.168.3.7"},
};

std::string chosen(std::string_view pattern, std::string_view preferred = "10.1.0.7") {
  return choose_interface(kHost, pattern, preferred).address;
}

}  // namespace

TEST_CASE("an interface is chosen by prefix, name or what it is not", "[interfaces]") {
  CHECK(chosen("ib") == "192.168.3.7");
  CHECK(chosen("wlan,ib,docker") == "172.17.0.1");
  CHECK(chosen("=eth1") == "10.1.0.7");
  CHECK(chosen("=wlan0,eth10") == "10.2.0.7");
  CHECK(chosen("^docker,eth") == "192.168.3.7");
  CHECK(chosen("^=docker0,eth0,eth1") == "10.2.0.7");
  CHECK(chosen("lo") == "127.0.0.1");
}

TEST_CASE("of several interfaces the one that reaches rank 0 is taken, if it matches",
          "[interfaces]") {
  CHECK(chosen("eth") == "10.1.0.7");
  CHECK(chosen("eth", "10.2.0.7") == "10.2.0.7");
  CHECK(chosen("eth", "192.168.3.7") == "10.0.0.7");
  CHECK(chosen("eth", "fd09::1") == "fd00::7");
  CHECK(chosen("^", "127.0.0.1") == "172.17.0.1");
}

TEST_CASE("an interface that is not there is an error that lists those that are", "[interfaces]") {
  CHECK_THROWS_WITH(choose_interface(std::span(kHost).subspan(4, 2), "=eth", "10.0.0.1"),
                    "choose a network interface: none matches '=eth'; this host has "
                    "eth1 (10.1.0.7), eth10 (10.2.0.7)");
}

TEST_CASE("this host has a loopback interface", "[interfaces]") {
  const auto here = list_interfaces();
  CHECK(std::any_of(here.begin(), here.end(),
                    [](const Interface& interface) { return interface.is_loopback; }));
}
