#include "lib/net/identity/own_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"
#include "lib/base/host_name.h"
#include "lib/net/identity/identity.h"
#include "lib/net/socket/resolve.h"

namespace gxp {
namespace {

constexpr int kDiscard = 9;  // a port (RFC 863); nothing is sent there
constexpr std::chrono::seconds kForName{2};

socklen_t size_of(const sockaddr& address) {
  return address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

// "" if it means nothing on another host.
std::string numeric_address(const sockaddr& address) {
  if (address.sa_family != AF_INET && address.sa_family != AF_INET6) return "";
  if (address.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return "";
  }
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(&address, size_of(address), text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return "";
  return is_loopback(text.data()) ? "" : text.data();
}

// A name may have been another host's before.
bool is_ours(Address address) {
  const Fd probe(::socket(address.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  reinterpret_cast<sockaddr_in*>(address.get())->sin_port = 0;  // where sin6_port is, too
  return probe.valid() && ::bind(probe.get(), address.get(), address.length) == 0;
}

std::string address_of_name() {
  const std::string name = host_name();
  std::string cause;
  if (name.empty()) return "";
  for (const Address& address : resolve(name, kDiscard, false, Deadline::after(kForName), cause)) {
    const std::string text = numeric_address(*address.get());
    if (!text.empty() && is_ours(address)) return text;
  }
  return "";
}

// Addresses that are nobody's (RFC 5737, RFC 3849). Connecting a datagram socket sends nothing.
std::string address_of_default_route() {
  std::string cause;
  for (const char* nobody : {"192.0.2.1", "2001:db8::1"}) {
    for (const Address& to : resolve(nobody, kDiscard, false, Deadline::after(kForName), cause)) {
      const Fd probe(::socket(to.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      Address own;
      if (!probe.valid() || ::connect(probe.get(), to.get(), to.length) != 0 ||
          ::getsockname(probe.get(), own.get(), &own.length) != 0)
        continue;
      const std::string text = numeric_address(*own.get());
      if (!text.empty()) return text;
    }
  }
  return "";
}

std::string address_of_first_interface() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, ::freeifaddrs);
  for (const ifaddrs* at = found; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const std::string text = numeric_address(*at->ifa_addr);
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace

std::string own_address() {
  for (const auto find : {address_of_name, address_of_default_route, address_of_first_interface}) {
    const std::string address = find();
    if (!address.empty()) return address;
  }
  return "127.0.0.1";
}

}  // namespace gxp
