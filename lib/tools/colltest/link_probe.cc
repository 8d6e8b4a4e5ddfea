#include "lib/tools/colltest/link_probe.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"
#include "lib/base/median.h"
#include "lib/collective/communicator.h"

namespace gxp {
namespace {

// Which network interface of this host carried something: by the OS's counters.
using InterfaceBytes = std::map<std::string, uint64_t>;

constexpr int kSentColumn = 8;  // of /proc/net/dev, counted from 0 behind the name

// Bytes sent by each interface of this network namespace so far; empty where the OS does not
// say.
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

// The interface that has sent most since then, if that is at least `bytes`; else "". Not the
// loopback device, which is no link.
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

// Bytes of the largest packet that it sends, without the Ethernet header; 0: unknown.
int mtu_of_interface(const std::string& name) {
  ifreq request{};
  if (name.empty() || name.size() >= sizeof request.ifr_name) return 0;
  std::ranges::copy(name, request.ifr_name);
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0 || ioctl(socket.get(), SIOCGIFMTU, &request) != 0) return 0;
  return request.ifr_mtu;
}

// Headers of each packet: Ethernet outside the MTU; IP, TCP and its timestamps inside.
constexpr double kOutsideBytes = 14;
constexpr double kInsideBytes = 20 + 20 + 12;

// Measurements of bandwidth. Other work on the hosts makes some slower; the first of all, which
// meets a full token bucket where there is one, may be too fast.
constexpr int kTrials = 6;
constexpr int kRoundTrips = 50;  // for the latency, after as many that are not counted

using InterfaceName = std::array<char, IFNAMSIZ>;  // with the zero at its end

// The receiver follows the sender, which alone looks at the clock: each trial begins with the
// number of messages that come, none: this was the last.
class PairProbe {
 public:
  PairProbe(Communicator& comm, const ProbeOptions& options)
      : comm_(comm), options_(options), data_(options.message_bytes) {}

  ProbedLink send_to(int peer) {
    ProbedLink link{.from = comm_.rank(), .to = peer, .latency_s = latency_to(peer)};
    uint64_t messages = messages_for(peer, options_.seconds / kTrials);
    const InterfaceBytes before = sent_by_interface();
    std::vector<double> rates;
    for (int trial = 0; trial < kTrials; ++trial)
      rates.push_back(double(messages * data_.size()) / seconds_of(peer, messages) / 1e9);
    announce(peer, 0);
    std::ranges::sort(rates);
    link.gb_per_s = rates[kTrials - 2];
    link.interface = busiest_interface(before, kTrials * messages * data_.size());
    const double mtu = mtu_of_interface(link.interface);
    if (mtu > kInsideBytes)
      link.link_gb_per_s = link.gb_per_s * (mtu + kOutsideBytes) / (mtu - kInsideBytes);
    return link;
  }

  void receive_from(int peer) {
    for (int i = 0; i < 2 * kRoundTrips; ++i) {
      comm_.recv(peer, memory_of(word_));
      comm_.send(peer, memory_of(word_));
    }
    for (uint64_t messages = announced(peer); messages > 0; messages = announced(peer)) {
      for (uint64_t i = 0; i < messages; ++i) comm_.recv(peer, memory_of(data_));
      comm_.send(peer, memory_of(word_));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  double latency_to(int peer) {
    std::vector<double> times;
    for (int i = 0; i < 2 * kRoundTrips; ++i) {
      const auto begin = Clock::now();
      comm_.send(peer, memory_of(word_));
      comm_.recv(peer, memory_of(word_));
      times.push_back(seconds_since(begin) / 2);
    }
    return median_of(std::span(times).subspan(kRoundTrips));
  }

  // As many as take `seconds`, at least one.
  uint64_t messages_for(int peer, double seconds) {
    for (uint64_t messages = 1;; messages *= 4) {
      const double taken = seconds_of(peer, messages);
      if (taken >= seconds / 4)
        return std::max<uint64_t>(1, uint64_t(double(messages) * seconds / taken));
    }
  }

  // From the first message until the peer says that the last has come.
  double seconds_of(int peer, uint64_t messages) {
    announce(peer, messages);
    const auto begin = Clock::now();
    for (uint64_t i = 0; i < messages; ++i) comm_.send(peer, memory_of(data_));
    comm_.recv(peer, memory_of(word_));
    return seconds_since(begin);
  }

  void announce(int peer, uint64_t messages) {
    word_ = {messages};
    comm_.send(peer, memory_of(word_));
  }
  uint64_t announced(int peer) {
    comm_.recv(peer, memory_of(word_));
    return word_[0];
  }

  Communicator& comm_;
  const ProbeOptions& options_;
  std::vector<std::byte> data_;
  std::array<uint64_t, 1> word_{};
};

}  // namespace

std::vector<ProbedLink> probe_links(Communicator& comm, const ProbeOptions& options) {
  std::vector<ProbedLink> links;
  for (int from = 0; from < comm.world_size(); ++from) {
    for (int to = 0; to < comm.world_size(); ++to) {
      if (from == to || (options.only_within_hosts && !comm.share_host(from, to))) continue;
      links.push_back({.from = from, .to = to});
    }
  }
  PairProbe probe(comm, options);
  // Whoever measured a pair adds its numbers, and its letters, to zeros.
  std::vector<double> figures;
  std::vector<InterfaceName> interfaces;
  for (const ProbedLink& pair : links) {
    ProbedLink measured;
    comm.barrier();
    if (comm.rank() == pair.from) measured = probe.send_to(pair.to);
    if (comm.rank() == pair.to) probe.receive_from(pair.from);
    figures.insert(figures.end(), {measured.latency_s, measured.gb_per_s, measured.link_gb_per_s});
    std::ranges::copy(measured.interface, interfaces.emplace_back().begin());
  }
  comm.all_reduce(memory_of(figures), DType::kF64, ReduceOp::kSum);
  comm.all_reduce(memory_of(interfaces), DType::kU8, ReduceOp::kSum);
  for (size_t i = 0; i < links.size(); ++i) {
    links[i].latency_s = figures[3 * i];
    links[i].gb_per_s = figures[3 * i + 1];
    links[i].link_gb_per_s = figures[3 * i + 2];
    links[i].interface = interfaces[i].data();
  }
  return links;
}

}  // namespace gxp
