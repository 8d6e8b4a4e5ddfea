// The addresses under which this host can be reached, and the choice among them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

struct Interface {
  std::string name;     // "eth0"
  std::string address;  // "10.0.0.7", "fd00::7"
  bool is_loopback = false;
};

// The interfaces that are up, one entry for each address, without the link-local ones of IPv6: they
// mean nothing on another host. Errors: kIo.
std::vector<Interface> list_interfaces();

// `pattern` is NCCL_SOCKET_IFNAME's: "eth,ib" are prefixes, "=eth0,eth1" whole names, and a "^" in
// front of either means all but these. The loopback interface is taken only if it is named.
// Among those that match, the one with the address `preferred` is taken if it exists, then the
// first of the same IP version, then the first. Errors: kConfig if none matches; the message lists
// the interfaces.
const Interface& choose_interface(std::span<const Interface> interfaces, std::string_view pattern,
                                  std::string_view preferred);

}  // namespace gxp
