#include "lib/net/own_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "lib/base/fd.h"
#include "lib/net/identity.h"

namespace gxp {
namespace {

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

AddressList look_up(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), "9", &hints, &found) != 0) found = nullptr;
  return {found, [](addrinfo* list) {
            if (list != nullptr) ::freeaddrinfo(list);
          }};
}

socklen_t size_of(const sockaddr& address) {
  return address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

// "" if it means nothing on another host.
std::string to_text(const sockaddr& address) {
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
bool is_ours(const addrinfo& entry) {
  const Fd probe(::socket(entry.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage address{};
  std::copy_n(reinterpret_cast<const char*>(entry.ai_addr), entry.ai_addrlen,
              reinterpret_cast<char*>(&address));
  reinterpret_cast<sockaddr_in&>(address).sin_port = 0;  // where sin6_port is, too
  return probe.valid() &&
         ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), entry.ai_addrlen) == 0;
}

std::string address_of_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  const AddressList found = look_up(name.data(), 0);
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    const std::string text = to_text(*at->ai_addr);
    if (!text.empty() && is_ours(*at)) return text;
  }
  return "";
}

// Addresses that are nobody's (RFC 5737, RFC 3849). Connecting a datagram socket sends nothing.
std::string address_of_default_route() {
  for (const char* nobody : {"192.0.2.1", "2001:db8::1"}) {
    const AddressList to = look_up(nobody, AI_NUMERICHOST);
    const Fd probe(::socket(to ? to->ai_family : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    auto* address = reinterpret_cast<sockaddr*>(&own);
    socklen_t size = sizeof own;
    if (!to || !probe.valid() || ::connect(probe.get(), to->ai_addr, to->ai_addrlen) != 0 ||
        ::getsockname(probe.get(), address, &size) != 0)
      continue;
    const std::string text = to_text(*address);
    if (!text.empty()) return text;
  }
  return "";
}

std::string address_of_first_interface() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, ::freeifaddrs);
  for (const ifaddrs* at = found; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const std::string text = to_text(*at->ifa_addr);
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
