// Finds two accesses to the same bytes that nothing orders.
//
// Each stream counts its works; a vector clock says how many works of every stream are over when a
// work starts (Mattern, Parallel and Distributed Algorithms, 1989). Per byte range only the last
// write and each stream's last read after it are kept: an access that is ordered after those is
// ordered after all earlier ones, too, or there was a race before (FastTrack: Flanagan & Freund,
// PLDI 2009). The verdict depends on the order of submission and the events alone, not on timing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/device/stream.h"

namespace gxp {

// How many works of each stream are over; streams are numbered from 0, unknown ones are at 0.
class VectorClock {
 public:
  [[nodiscard]] uint64_t operator[](size_t stream) const {
    return stream < times_.size() ? times_[stream] : 0;
  }
  // One more work of `stream`; returns its time, from 1.
  uint64_t tick(size_t stream);
  // The later of both, stream by stream.
  void join(const VectorClock& other);

 private:
  std::vector<uint64_t> times_;
};

// The work that accessed a range, and when by its own stream's count.
struct Toucher {
  size_t stream = 0;
  uint64_t time = 0;  // 0: none
  std::string_view work;
  std::string_view stream_name;
};

class RaceDetector {
 public:
  // Adds a work of `stream` that starts at `clock` (its own tick included). Returns the
  // report of the first race it is in: both works, the bytes, and the event that is missing.
  // Cost: the pieces that its ranges have been cut into by earlier accesses, times log.
  std::optional<std::string> add(const Work& work, size_t stream, std::string_view stream_name,
                                 const VectorClock& clock);
  // What reports call these bytes. Where names overlap, the shortest range's counts, and
  // of equal ones the last.
  void name(ConstMemory memory, std::string text);
  // The bytes are freed: forgets their accesses and names.
  void forget(ConstMemory memory);

 private:
  struct Piece {
    uintptr_t end = 0;
    Toucher writer;
    std::vector<Toucher> readers;  // since the write; at most one per stream
  };
  struct Name {
    uintptr_t begin, end;
    std::string text;
  };
  using Pieces = std::map<uintptr_t, Piece>;  // by first byte; they do not overlap

  Pieces::iterator cut(uintptr_t at);
  std::optional<std::string> touch(const Access& access, const Toucher& toucher,
                                   const VectorClock& clock);
  [[nodiscard]] std::string describe(uintptr_t begin, uintptr_t end) const;

  Pieces pieces_;
  std::vector<Name> names_;
  std::set<std::string, std::less<>> words_;  // names of works and streams that touchers view
};

}  // namespace gxp
