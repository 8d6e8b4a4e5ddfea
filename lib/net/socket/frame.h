// The messages between a Store and its StoreServer, as bytes. All kinds share one layout:
//
//   type u8 | key_bytes u16 | value_bytes u32 | request u32 | rank i32 | key | value
//   15 bytes of header; numbers little-endian, without padding
//
//   kind      from    key    value             request         rank
//   join      client                                           world size
//   welcome   server
//   refused   server         why
//   set       client  key    value
//   get       client  key                      the answer's
//   gather    client  name   this rank's       the answer's
//   missing   client  name or key              the answer's
//   answer    server         the result        of the client
//   abort     client         reason                            culprit
//   verdict   server         reason                            culprit
//   goodbye   both
//   inquire   client         reason                            suspect
//   inquire   server                           the round
//   state     client         what it does      of the server
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

inline constexpr size_t kMaxKeyBytes = 256;
inline constexpr size_t kMaxValueBytes = size_t{16} << 20;

enum class FrameType : uint8_t {
  kJoin = 1,
  kWelcome,
  kRefused,
  kSet,
  kGet,
  kGather,
  kMissing,
  kAnswer,
  kAbort,
  kVerdict,
  kGoodbye,
  kInquire,
  kState,
  kAbsent,
};

struct Frame {
  FrameType type = FrameType::kJoin;
  std::string key;
  std::string value;
  uint32_t request = 0;
  int32_t rank = 0;
};

void store_u32(uint8_t* to, uint32_t value);
uint32_t load_u32(const uint8_t* from);

// Appends the frame's bytes to `out`.
void append_frame(std::string& out, const Frame& frame);

// Takes one whole frame off the front of `in`, from `*offset` on, and moves `*offset` behind it;
// nothing if it is not complete yet. Throws kPeer if the kind is unknown, the key is longer than
// kMaxKeyBytes or the value than `max_value_bytes`.
std::optional<Frame> take_frame(std::string_view in, size_t* offset, size_t max_value_bytes);

// Strings as one string, each with its length before it, and back. Throws kPeer if malformed.
std::string pack_strings(const std::vector<std::string>& strings);
std::vector<std::string> unpack_strings(std::string_view packed);

}  // namespace gxp
