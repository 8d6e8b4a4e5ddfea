// The lanes of one link and the slots of its first lane: sends and takes the messages below,
// keeps the credits, and knows when the peer is gone.
//   Threads  one at a time, except say_end().
//   Errors   kDevice; kPeer: what comes is not what the other end of a link says.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/transport/transport.h"
#include "lib/transport/verbs/verbs_lane.h"
#include "lib/transport/verbs/verbs_ports.h"
#include "lib/transport/verbs/verbs_registrations.h"

namespace gxp {

// What two ends of a link say to each other in slots: a header, and with some a body.
enum class VerbsKind : uint8_t {
  kPayload = 1,  // a short message; the body is all of it
  kAnnounce,     // a long message is ready to be sent
  kGrant,        // a place for data of a long message; the body is a VerbsGrant
  kCredits,      // nothing but credits
  kEnd,          // the sender of this ends
};

struct VerbsHeader {
  uint32_t magic = 0;
  VerbsKind kind = VerbsKind::kPayload;
  uint8_t credits = 0;  // additional messages that the receiver of this may send
  uint8_t answers = 0;  // of a grant: 1 if it is for the announcement `number`
  uint8_t unused = 0;
  uint32_t number = 0;  // of an announcement
  uint32_t body_bytes = 0;
  Tag tag = 0;
  uint64_t bytes = 0;  // of the whole message
};

// Where part of a message may be written. A grant that answers no announcement is for the oldest
// message with its tag that has no grant, and for all of it.
struct VerbsGrant {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t address = 0;
  uint32_t number = 0;  // the notification of each lane's last write
  uint32_t unused = 0;
  std::array<uint32_t, kMaxRails> keys{};  // by the granter's rail
};

// How data are cut over lanes: `count` parts of `share` bytes, the last one with what is left.
struct LaneCut {
  size_t count = 1;
  size_t share = 0;
};
LaneCut cut_over_lanes(size_t bytes, size_t lanes);

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
