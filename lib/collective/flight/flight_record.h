// The content of a rank's flight recorder (flight_recorder.h): the last operations of one rank.
// Read from a file, also one whose process was killed, or from bytes that a rank has sent. Neither
// is trusted: lengths, versions and all fields are checked.
//
// The bytes: 64-bit words in the machine's order, 4720 + 64 * capacity bytes.
//   word  0       "GXPFLY", zero-padded, as a little-endian number
//         1       version (low half), capacity: operations in the ring (high half)
//         2       rank, world size
//         3       process
//         4, 5    one moment by CLOCK_REALTIME and by CLOCK_MONOTONIC, in ns
//         6       algorithms named so far
//         7       CLOCK_MONOTONIC when these bytes were taken; 0 in a file
//         8-15    the host (host_identity() of lib/transport/context.h), zero-padded
//        16-63    the names of 16 algorithms, 24 bytes each, zero-padded
//        64-575   groups 0 .. 255, two words each: operations entered, number of the rank's
//                 operation at which the group began; leader, size (both 0: no such group)
//       576, 577  the rank's activity, and its training step (0: none yet)
//       578, 579  CLOCK_MONOTONIC when the activity began; ns that the rank has waited for data
//       580-587   the host's name, zero-padded
//       588, 589  most bytes so far: of the host's memory, resident, when these bytes were taken (0 in a
//                 file); of the device's memory, when the activity began
//       590-      the ring: operation n lies in slot n % capacity, eight words each:
//          0  2n + 1 while it is being written, 2n + 2 afterwards, 0: empty
//          1  entered, ns of CLOCK_MONOTONIC; bit 0: exact, else up to one clock tick early
//          2  left, the same; 0: not yet; 2: microseconds after it was entered; bit 63: it failed
//          3  step, rank waited for (-1: none); both -1 before the first step
//          4  elements; of a message bytes; of several messages their number
//          5  sequence, root; of a message the rank it goes to
//          6  bytes: group, what, dtype, operator, algorithm (255: none), 0, 0, 0
//             what: the Collective, or 64 + the PeerCall's kind
//          7  leader of the group; of a message the rank it comes from
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/collective/algorithm/call.h"
#include "lib/collective/flight/activity.h"

namespace gxp {

// Messages between ranks outside of collectives, as the recorder describes them.
struct PeerCall {
  enum class Kind : uint8_t { kSend, kReceive, kExchange, kMessages };
  Kind kind = Kind::kSend;
  int to = -1;
  int from = -1;
  size_t count = 0;       // bytes; kMessages: messages, of a group of calls
  uint32_t sequence = 0;  // as Call's
  friend bool operator==(const PeerCall&, const PeerCall&) = default;
};

// "send 3 (64 B to rank 1)", "exchange 4 (64 B to rank 1, from rank 2)", "messages 5 (6 of them)".
std::string to_string(const PeerCall& call);

struct FlightEntry {
  enum class State { kRunning, kDone, kFailed };
  uint64_t number = 0;  // among all operations of the rank, from 0
  std::variant<Call, PeerCall> call;
  uint8_t group = 0;
  int leader = 0;  // of the group, a collective's only: distinguishes groups of one number
  std::string algorithm;
  State state = State::kRunning;
  int64_t entered_ns = 0;
  int64_t left_ns = 0;           // 0 while it runs
  bool entered_exactly = false;  // else up to one clock tick (1 to 10 ms) earlier than it was
  bool left_exactly = false;
  int step = -1;
  int waits_for = -1;  // rank in the world
};

// "all-reduce 17 (4096 f32, sum)", "broadcast 3 (16 u8 from rank 0) in group 2".
std::string describe(const FlightEntry& entry);

struct FlightRecord {
  struct Group {
    uint32_t entered = 0;  // operations of this group
    uint32_t since = 0;    // the number of the first entry that may belong to it
    int leader = 0;
    int size = 0;
  };
  int rank = 0;
  int world_size = 1;
  int64_t process = 0;
  std::string host{};
  std::string host_name{};
  Activity activity = Activity::kStart;
  int64_t step = 0;                    // that the rank is in; 0: none yet
  int64_t activity_since_ns = 0;       // by the clock of the entries
  int64_t data_ns = 0;                 // waited for data so far
  int64_t host_peak_bytes = 0;         // resident in the host's memory; 0: not known
  int64_t device_peak_bytes = 0;       // of the device's; 0: none
  int64_t taken_ns = 0;                // by the clock of the entries; ages count from here
  int64_t wall_offset_ns = 0;          // CLOCK_REALTIME - CLOCK_MONOTONIC
  std::vector<FlightEntry> entries{};  // oldest first
  std::map<int, Group> groups{};
  size_t unreadable = 0;  // entries left out: half-written or with impossible values
};

// Throws kIo, or kCorrupt with what is wrong. A record that a recorder of this host keeps is taken
// now; one of another, when its last operation was entered or left; an image() when it was made.
FlightRecord read_flight_record(const std::string& path);
// `source` is for messages. Throws kCorrupt.
FlightRecord parse_flight_record(std::string_view image, std::string_view source);

// The file of a rank's recorder: DIRECTORY/rank-N.flight.
std::string flight_record_path(const std::string& directory, int rank);
// All of a directory, by rank. Throws as read_flight_record(), and kIo if there are none.
std::vector<FlightRecord> read_flight_records(const std::string& directory);

// "in all-reduce 17 (4096 f32, sum) for 60.0 s (ring, step 2, waiting for rank 1)", "all-reduce 16
// (...) ended 61.2 s before", "nothing yet".
std::string describe_last(const FlightRecord& record);
// For people: one line on the rank, then one line an operation, the last `limit`, newest first.
std::string to_text(const FlightRecord& record, size_t limit = 32);

}  // namespace gxp
