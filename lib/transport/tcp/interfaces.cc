#include "lib/transport/tcp/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"

namespace gxp {

namespace {

// A parsed pattern.
struct InterfacePattern {
  bool all_but = false;
  bool whole_names = false;
  std::vector<std::string_view> names;
};

bool take_prefix(std::string_view& text, char prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(1);
  return true;
}

InterfacePattern parse(std::string_view pattern) {
  InterfacePattern wanted;
  wanted.all_but = take_prefix(pattern, '^');
  wanted.whole_names = take_prefix(pattern, '=');
  while (!pattern.empty()) {
    const size_t comma = std::min(pattern.find(','), pattern.size());
    if (comma > 0) wanted.names.push_back(pattern.substr(0, comma));
    pattern.remove_prefix(std::min(comma + 1, pattern.size()));
  }
  return wanted;
}

bool matches(const InterfacePattern& wanted, const Interface& interface) {
  const auto named =
      std::any_of(wanted.names.begin(), wanted.names.end(), [&](std::string_view name) {
        return wanted.whole_names ? interface.name == name : interface.name.starts_with(name);
      });
  return wanted.all_but ? !named && !interface.is_loopback : named;
}

bool is_v6(std::string_view address) { return address.find(':') != std::string_view::npos; }

// The address as text; empty if it is none for other hosts.
std::string address_of(const sockaddr* address) {
  const bool v6 = address->sa_family == AF_INET6;
  if (v6 && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)) {
    return "";
  }
  std::array<char, NI_MAXHOST> text{};
  const socklen_t bytes = v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (getnameinfo(address, bytes, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return text.data();
}

[[noreturn]] void fail_none(std::span<const Interface> interfaces, std::string_view pattern) {
  std::vector<std::string> known;
  for (const Interface& interface : interfaces) {
    known.push_back(fmt::format("{} ({})", interface.name, interface.address));
  }
  fail(ErrorKind::kConfig, "choose a network interface: none matches '{}'; this host has {}",
       pattern, known.empty() ? "none that is up" : joined(known, ", "));
}

}  // namespace

std::vector<Interface> list_interfaces() {
  ifaddrs* list = nullptr;
  check_sys(getifaddrs(&list), "list the network interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const std::string address = address_of(entry->ifa_addr);
    if (address.empty()) continue;
    interfaces.push_back({entry->ifa_name, address, (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return interfaces;
}

const Interface& choose_interface(std::span<const Interface> interfaces, std::string_view pattern,
                                  std::string_view preferred) {
  const InterfacePattern wanted = parse(pattern);
  const Interface* best = nullptr;
  int best_rank = 0;
  for (const Interface& interface : interfaces) {
    if (!matches(wanted, interface)) continue;
    const bool same_version = is_v6(interface.address) == is_v6(preferred);
    const int rank = interface.address == preferred ? 3 : same_version ? 2 : 1;
    if (rank > best_rank) best = &interface;
    best_rank = std::max(rank, best_rank);
  }
  if (best == nullptr) fail_none(interfaces, pattern);
  return *best;
}

}  // namespace gxp
