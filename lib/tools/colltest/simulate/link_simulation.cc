#include "lib/tools/colltest/simulate/link_simulation.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace gxp {

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

}  // namespace gxp
