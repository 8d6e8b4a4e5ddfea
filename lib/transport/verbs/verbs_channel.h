// The lanes of one link and the slots of its first lane: sends and takes what verbs_messages.h
// has, keeps the credits, and knows when the peer is gone.
//   Threads  one at a time, except say_end().
//   Errors   kDevice; kPeer: what comes is not what the other end of a link says.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/transport/verbs/verbs_lane.h"
#include "lib/transport/verbs/verbs_messages.h"
#include "lib/transport/verbs/verbs_registrations.h"

namespace gxp {

// Pages of this process's own that the devices may use; never shared with a child.
class VerbsRegion {
 public:
  VerbsRegion(VerbsRegistrations& registrations, size_t bytes, VerbsOrder order);
  ~VerbsRegion();
  VerbsRegion(const VerbsRegion&) = delete;
  VerbsRegion& operator=(const VerbsRegion&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] const VerbsRegistrations::Use& registration() const { return registration_; }

 private:
  std::byte* data_;
  size_t bytes_;
  VerbsRegistrations::Use registration_;
};

// One lane of a link and its device.
struct VerbsRoute {
  std::unique_ptr<VerbsLane> lane;
  size_t device = 0;      // this rank's, for its registrations' keys
  size_t peers_rail = 0;  // the peer's, for its grants' keys
};

class VerbsChannel {
 public:
  // `device`: the first lane's. The registrations outlive this.
  VerbsChannel(int peer, std::vector<VerbsRoute> routes, VerbsRegistrations& registrations,
               size_t slot_bytes);
  // Posts receives; before the lanes are connected, so that whatever arrives has a slot.
  void post_receives();

  [[nodiscard]] std::span<const VerbsRoute> routes() const { return routes_; }
  // The longest message that goes into a slot.
  [[nodiscard]] size_t longest_payload() const { return slot_bytes_ - sizeof(VerbsHeader); }

  // Sends a header and its body from a slot; false if there is no room or no credit now.
  bool send(VerbsHeader header, ConstMemory body);
  // Whether a write fits into the lane's queue; messages keep their share of the first lane's.
  [[nodiscard]] bool can_write(size_t lane) const;
  // Gives credits back when many have gathered; whether it did.
  bool return_credits();
  // Notifies the peer, once, that this rank ends. Any thread, also during the other calls.
  void say_end() noexcept;
  // Messages in flight are abandoned: no rank waits for them any more. `at_once`: nothing is sent
  // or received from now on, not even the last word.
  void give_up(bool at_once) noexcept;
  // Ends the connections; nothing but the destructor may follow. The devices then no longer access
  // this rank's memory for them.
  void close() { routes_.clear(); }
  // Whether all that was posted is done, or never will be.
  [[nodiscard]] bool is_idle() const;

  // What completions tell. A header that has come; its body follows it in the slot.
  const VerbsHeader& take(uint16_t slot, size_t bytes);
  [[nodiscard]] ConstMemory body_of(uint16_t slot) const;
  // The slot is free again; if it held a message, the peer gets a credit.
  void recycle(size_t lane, uint16_t slot);
  void release_message(uint16_t slot);
  void on_sent(size_t lane, uint16_t slot);
  void on_written(size_t lane) { routes_[lane].lane->on_sent(); }
  void on_failure(const WorkId& id, const ibv_wc& completion);

  // Why nothing will move any more; "" as long as something may.
  [[nodiscard]] std::string_view closed() const;
  [[nodiscard]] bool failed() const { return !failure_.empty() && !peer_ended_; }
  [[noreturn]] void fail_corrupt(std::string_view what) const;

 private:
  [[nodiscard]] bool is_open() const { return failure_.empty() && !peer_ended_; }
  [[nodiscard]] RegisteredBytes slot(size_t index, size_t bytes) const;
  uint8_t take_owed();

  int peer_;
  std::vector<VerbsRoute> routes_;
  size_t slot_bytes_;
  VerbsRegion slots_;                // those of receives, then those of sends, then the last word's
  std::deque<uint16_t> free_slots_;  // of sends
  int credits_ = kMessageCredits;    // messages that the peer has room for
  int owed_ = 0;                     // messages taken since the last report to the peer
  std::atomic<bool> ended_ = false;  // said so
  bool end_sent_ = false;            // and the peer has it
  bool peer_ended_ = false;
  bool given_up_ = false;
  bool cut_ = false;
  std::string failure_;
};

}  // namespace gxp
