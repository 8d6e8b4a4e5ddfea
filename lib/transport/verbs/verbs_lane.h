// One reliable connection (queue pair) to a peer, with what its queues have room for.
//   Threads  one at a time, except send_last().
//   Errors   kDevice: the device refuses the request.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lib/base/deadline.h"
#include "lib/device/memory.h"
#include "lib/transport/verbs/verbs_budget.h"
#include "lib/transport/verbs/verbs_device.h"

namespace gxp {

// What the other end must know to connect.
struct LaneAddress {
  uint32_t queue_pair = 0;
  uint32_t first_packet = 0;  // 24 bits
};

// The path of one lane, as both ends' offers and the options have it.
struct LanePath {
  VerbsPort peers_port{};
  GidKind kind = GidKind::kIpv4;
  uint16_t pkey_index = 0;
  uint8_t traffic_class = 0;
  bool reads = false;     // the other end may read memory that allows it
  double patience_s = 0;  // a peer that does not answer is given up within it, or within 4 s
};

// What a work request was, from its completion.
struct WorkId {
  enum class Kind : uint8_t { kReceive, kSend, kWrite, kFlush };
  Kind kind = Kind::kReceive;
  uint8_t lane = 0;
  uint16_t slot = 0;
  uint32_t peer = 0;
};
WorkId parse_work_id(uint64_t id);

// A part of a registered region.
struct RegisteredBytes {
  std::byte* data = nullptr;
  size_t bytes = 0;
  uint32_t local_key = 0;
};

class VerbsLane {
 public:
  // `receives`: entries of the receive queue. `device` outlives this.
  VerbsLane(VerbsDevice& device, int peer, size_t index, int receives);
  [[nodiscard]] LaneAddress address() const { return {pair_->qp_num, first_packet_}; }
  void connect(const LaneAddress& peer, const LanePath& path);

  [[nodiscard]] VerbsDevice& device() const { return device_; }
  // "mlx5_0 port 1 (10.0.0.1 to 10.0.0.2, queue pairs 18 and 25)"
  [[nodiscard]] const std::string& description() const { return description_; }
  // Entries of the send queue that are free.
  [[nodiscard]] int room() const { return room_; }
  [[nodiscard]] bool is_idle() const { return room_ == kQueueEntries - 1; }

  // `memory` may be empty where only the ends of data arrive.
  void receive(uint16_t slot, const RegisteredBytes& memory);
  // These need room(); one completion gives it back.
  void send(uint16_t slot, const RegisteredBytes& memory);
  // To `address` of the peer. With `number`, the peer is notified once these and all earlier bytes
  // of this lane have arrived.
  void write(const RegisteredBytes& memory, uint64_t address, uint32_t remote_key,
             const uint32_t* number);
  // Reads from `address` of the peer: completes after all earlier writes of this device to the
  // peer. The completion is a flush with this slot.
  void read(uint16_t slot, const RegisteredBytes& into, uint64_t address, uint32_t remote_key);
  // Once, whatever the room. Any thread.
  void send_last(uint16_t slot, const RegisteredBytes& memory) noexcept;
  void on_sent() { ++room_; }
  // Nothing is sent or received any more; what was posted fails.
  void stop() noexcept;

 private:
  void modify(ibv_qp_attr& attributes, int mask, std::string_view act);
  // Both return errno's number, 0 if the device has taken the request.
  int post(ibv_send_wr request, const WorkId& id, const RegisteredBytes& memory);
  int post_send(uint16_t slot, const RegisteredBytes& memory);

  VerbsDevice& device_;
  int peer_;
  size_t index_;
  uint32_t first_packet_;
  std::string description_;
  VerbsHandle<ibv_qp> pair_;
  int room_ = kQueueEntries - 1;
};

}  // namespace gxp
