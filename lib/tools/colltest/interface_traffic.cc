#include "lib/tools/colltest/interface_traffic.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "lib/base/fd.h"

namespace gxp {
namespace {

constexpr int kSentColumn = 8;  // of /proc/net/dev, counted from 0 behind the name

}  // namespace

InterfaceBytes sent_by_interface() {
  InterfaceBytes sent;
  std::ifstream file("/proc/self/net/dev");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;  // the two lines of the heading
    std::istringstream columns(line.substr(colon + 1));
    uint64_t value = 0;
    for (int i = 0; i <= kSentColumn; ++i) columns >> value;
    if (columns)
      sent[line.substr(line.find_first_not_of(' '), colon - line.find_first_not_of(' '))] = value;
  }
  return sent;
}

std::string busiest_interface(const InterfaceBytes& before, uint64_t bytes) {
  std::string busiest;
  for (const auto& [name, now] : sent_by_interface()) {
    const auto then = before.find(name);
    const uint64_t sent = then == before.end() ? 0 : now - then->second;
    if (name == "lo" || sent < bytes) continue;
    busiest = name;
    bytes = sent;
  }
  return busiest;
}

int mtu_of_interface(const std::string& name) {
  ifreq request{};
  if (name.empty() || name.size() >= sizeof request.ifr_name) return 0;
  std::ranges::copy(name, request.ifr_name);
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0 || ioctl(socket.get(), SIOCGIFMTU, &request) != 0) return 0;
  return request.ifr_mtu;
}

}  // namespace gxp
