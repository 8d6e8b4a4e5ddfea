#include "lib/tools/colltest/simulate/simulated_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr double kBytesPerGb = 1e9;

class ClusterNetwork final : public SimulatedNetwork {
 public:
  ClusterNetwork(const Cluster& cluster, std::span<const int> gpu_of_rank)
      : cluster_(cluster),
        gpu_of_rank_(gpu_of_rank),
        seconds_per_folded_byte_(1 / (cluster.description().fold_gb_per_s * kBytesPerGb)) {}

  [[nodiscard]] std::vector<SimulatedLink> links() const override {
    std::vector<SimulatedLink> links;
    links.reserve(cluster_.links().size());
    for (const ClusterLink& link : cluster_.links()) {
      links.push_back({.seconds_per_unit = 1 / (link.gb_per_s * kBytesPerGb),
                       .latency_s = link.latency_s,
                       .follows = link.follows});
    }
    return links;
  }
  [[nodiscard]] std::string name_of(uint32_t link) const override { return cluster_.name_of(link); }
  size_t route(int from, int to, Cluster::Route& route) const override {
    return cluster_.route(gpu_of_rank_[size_t(from)], gpu_of_rank_[size_t(to)], route);
  }
  void set_work(Packet& packet) const override { packet.work = double(packet.bytes); }
  [[nodiscard]] double fold_seconds(uint64_t bytes) const override {
    return double(bytes) * seconds_per_folded_byte_;
  }
  [[nodiscard]] double copy_seconds(uint64_t bytes) const override { return fold_seconds(bytes); }
  [[nodiscard]] double overhead_seconds() const override {
    return cluster_.description().message_overhead_s;
  }
  [[nodiscard]] bool has_segments() const override { return true; }

 private:
  const Cluster& cluster_;
  std::span<const int> gpu_of_rank_;
  double seconds_per_folded_byte_;
};

// Links: for each rank the port that sends and the one that receives, then for each host its cores,
// the port that sends and the one that receives.
class FlatNetwork final : public SimulatedNetwork {
 public:
  FlatNetwork(const CallShape& shape, uint64_t buffer_bytes, const FlatLinks& links)
      : world_size_(uint32_t(shape.world_size)),
        hosts_(shape.hosts),
        buffer_bytes_(double(buffer_bytes)),
        flat_(links) {
    for (const char* name : {"hop", "exchange"}) check(flat_.inside, name);
    host_count_ = hosts_.empty() ? 1 : uint32_t(*std::ranges::max_element(hosts_)) + 1;
    host_ranks_.resize(host_count_);
    for (int rank = 0; rank < shape.world_size; ++rank) ++host_ranks_[host_of(rank)];
    if (host_count_ > 1) {
      GXP_ASSERT(flat_.between != nullptr);
      check(*flat_.between, "exchange");
    }
  }

  [[nodiscard]] std::vector<SimulatedLink> links() const override {
    std::vector<SimulatedLink> links(2 * world_size_ + 3 * host_count_, {.seconds_per_unit = 1});
    for (uint32_t rank = 0; rank < world_size_; ++rank) links[2 * rank].follows = true;
    for (uint32_t host = 0; host < host_count_; ++host) {
      links[first_of_host(host)].is_pool = true;
    }
    return links;
  }
  [[nodiscard]] std::string name_of(uint32_t link) const override {
    constexpr std::array<const char*, 3> kOfHost = {"cores", "sends", "receives"};
    if (link < 2 * world_size_) {
      return fmt::format("rank {} {}", link / 2, link % 2 == 0 ? "sends" : "receives");
    }
    const uint32_t index = link - 2 * world_size_;
    return fmt::format("host {} {}", index / 3, kOfHost[index % 3]);
  }
  size_t route(int from, int to, Cluster::Route& route) const override {
    const uint32_t sender = first_of_host(host_of(from));
    const uint32_t receiver = first_of_host(host_of(to));
    size_t count = 0;
    route[count++] = 2 * uint32_t(from);
    if (sender == receiver) {
      route[count++] = sender;
    } else {
      route[count++] = sender + 1;
      route[count++] = receiver + 2;
    }
    route[count++] = 2 * uint32_t(to) + 1;
    return count;
  }
  void set_work(Packet& packet) const override {
    const auto bytes = double(packet.bytes);
    if (host_of(packet.from) != host_of(packet.to)) {
      packet.work = flat_.between->curve("exchange")->at(bytes);
      return;
    }
    const int ranks = host_ranks_[host_of(packet.from)];
    packet.work = inside("hop", bytes, 1);
    packet.shared_work = inside("exchange", bytes, ranks) / ranks;
  }
  [[nodiscard]] double fold_seconds(uint64_t bytes) const override {
    return inside("fold", double(bytes), host_ranks_[0]);
  }
  [[nodiscard]] double copy_seconds(uint64_t bytes) const override {
    return inside("copy", double(bytes), 1);
  }
  [[nodiscard]] double overhead_seconds() const override { return 0; }
  [[nodiscard]] bool has_segments() const override { return false; }

 private:
  static void check(const LinkClass& links, const char* curve) {
    if (links.curve(curve) != nullptr) return;
    fail(ErrorKind::kConfig, "simulate over {}: the profile has no curve '{}'; calibrate again",
         links.transport, curve);
  }
  // `at_once` ranks had a message of these bytes in use when the curve was measured.
  [[nodiscard]] double inside(const char* name, double bytes, int at_once) const {
    const CostCurve* curve = flat_.inside.curve(name);
    if (curve == nullptr) return 0;
    return flat_.inside_scale * curve->at_part(bytes, buffer_bytes_ / at_once);
  }
  [[nodiscard]] uint32_t host_of(int rank) const {
    return hosts_.empty() ? 0 : uint32_t(hosts_[size_t(rank)]);
  }
  [[nodiscard]] uint32_t first_of_host(uint32_t host) const { return 2 * world_size_ + 3 * host; }

  uint32_t world_size_;
  std::span<const int> hosts_;
  double buffer_bytes_;
  FlatLinks flat_;
  uint32_t host_count_ = 1;
  std::vector<int> host_ranks_;  // by host
};

}  // namespace

LinkSimulation::LinkSimulation(std::vector<SimulatedLink> links)
    : links_(std::move(links)), free_at_(links_.size(), 0), loads_(links_.size()) {}

void LinkSimulation::send(double time, const Packet& packet, std::span<const uint32_t> route) {
  if (free_slots_.empty()) {
    if (moving_.size() >> kSlotBits != 0) {
      fail(ErrorKind::kConfig,
           "simulate: more than {} messages are under way at once; simulate fewer ranks, or an "
           "algorithm that sends fewer at a time",
           moving_.size());
    }
    free_slots_.push_back(uint32_t(moving_.size()));
    moving_.emplace_back();
  }
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  Moving& moving = moving_[slot];
  moving.packet = packet;
  moving.tail = time;
  moving.hop = 0;
  moving.hops = uint8_t(route.size());
  std::ranges::copy(route, moving.route.begin());
  if (links_[route.front()].follows) {
    travel(slot, time);
  } else {
    push(time, slot);
  }
}

// From the link that the head has reached up to the next one that others may reach before.
void LinkSimulation::travel(uint32_t slot, double head) {
  Moving& moving = moving_[slot];
  do {
    const uint32_t id = moving.route[moving.hop++];
    const SimulatedLink& link = links_[id];
    const double work = link.is_pool ? moving.packet.shared_work : moving.packet.work;
    const double service = work * link.seconds_per_unit;
    const double start = std::max(head, free_at_[id]);
    free_at_[id] = start + service;
    loads_[id].bytes += moving.packet.bytes;
    loads_[id].busy_s += service;
    moving.tail = std::max(moving.tail, start + service) + link.latency_s;
    head = (link.is_pool ? head : start) + link.latency_s;
  } while (moving.hop < moving.hops && links_[moving.route[moving.hop]].follows);
  push(moving.hop < moving.hops ? head : moving.tail, slot);
}

void LinkSimulation::push(double time, uint32_t slot) {
  events_due_.push({time, events_++ << kSlotBits | slot});
}

std::optional<LinkSimulation::Arrival> LinkSimulation::next() {
  while (!events_due_.empty()) {
    const Event event = events_due_.top();
    events_due_.pop();
    const auto slot = uint32_t(event.key & ((uint64_t{1} << kSlotBits) - 1));
    const Moving& moving = moving_[slot];
    if (moving.hop == moving.hops) {
      free_slots_.push_back(slot);
      return Arrival{event.time, moving.packet};
    }
    travel(slot, event.time);
  }
  return std::nullopt;
}

std::unique_ptr<SimulatedNetwork> make_cluster_network(const Cluster& cluster,
                                                       std::span<const int> gpu_of_rank) {
  return std::make_unique<ClusterNetwork>(cluster, gpu_of_rank);
}

std::unique_ptr<SimulatedNetwork> make_flat_network(const CallShape& shape, uint64_t buffer_bytes,
                                                    const FlatLinks& links) {
  return std::make_unique<FlatNetwork>(shape, buffer_bytes, links);
}

}  // namespace gxp
