// What two ends of a link say to each other in slots: a header, and with some a body.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/transport/transport.h"
#include "lib/transport/verbs/verbs_ports.h"

namespace gxp {

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

}  // namespace gxp
