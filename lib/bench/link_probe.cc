#include "lib/bench/link_probe.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "lib/base/median.h"

namespace gxp {
namespace {

constexpr int kTrials = 5;       // of bandwidth; the first fills caches, windows and buckets
constexpr int kRoundTrips = 50;  // for the latency, after as many that are not counted

// The receiver follows the sender, which alone looks at the clock: each trial begins with the
// number of messages that come, none: this was the last.
class PairProbe {
 public:
  PairProbe(Communicator& comm, const ProbeOptions& options)
      : comm_(comm), options_(options), data_(options.message_bytes) {}

  ProbedLink send_to(int peer) {
    ProbedLink link{.from = comm_.rank(), .to = peer, .latency_s = latency_to(peer)};
    uint64_t messages = messages_for(peer, options_.seconds / kTrials);
    std::vector<double> rates;
    for (int trial = 0; trial < kTrials; ++trial)
      rates.push_back(double(messages * data_.size()) / seconds_of(peer, messages) / 1e9);
    announce(peer, 0);
    link.gb_per_s = median_of(std::span(rates).subspan(1));
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

  static double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  double latency_to(int peer) {
    std::vector<double> times;
    for (int i = 0; i < 2 * kRoundTrips; ++i) {
      const auto begin = Clock::now();
      comm_.send(peer, memory_of(word_));
      comm_.recv(peer, memory_of(word_));
      times.push_back(since(begin) / 2);
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
    return since(begin);
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
  const int world_size = comm.world_size();
  PairProbe probe(comm, options);
  // Two numbers of each ordered pair; whoever measured them adds them to zeros.
  std::vector<double> figures(2 * size_t(world_size) * size_t(world_size), 0);
  const auto figures_of = [&](int from, int to) {
    return std::span(figures).subspan(2 * (size_t(from) * size_t(world_size) + size_t(to)), 2);
  };
  for (int from = 0; from < world_size; ++from) {
    for (int to = 0; to < world_size; ++to) {
      comm.barrier();
      if (from == to) continue;
      if (comm.rank() == to) probe.receive_from(from);
      if (comm.rank() != from) continue;
      const ProbedLink link = probe.send_to(to);
      figures_of(from, to)[0] = link.latency_s;
      figures_of(from, to)[1] = link.gb_per_s;
    }
  }
  comm.all_reduce(memory_of(figures), DType::kF64, ReduceOp::kSum);
  std::vector<ProbedLink> links;
  for (int from = 0; from < world_size; ++from) {
    for (int to = 0; to < world_size; ++to) {
      if (from != to) links.push_back({from, to, figures_of(from, to)[0], figures_of(from, to)[1]});
    }
  }
  return links;
}

}  // namespace gxp
