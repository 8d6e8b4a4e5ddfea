// The last operations of a rank, recorded as they happen, for others to read: other threads
// and, where there is a directory, other processes, also after this one was killed.
//
//   Cost      enter() 12 ns, or 7 ns where the caller knows the time; done() 5 ns; done_at_once()
//             and step() are one store. Clock reads are most of it: the coarse clock's (5 ns), the
//             exact one's (20 ns) once a clock tick only. Operations that are milliseconds apart
//             therefore have exact times, and fast ones do not pay for clocks. What comes after a
//             rank has published its own part, and before it waits for others, does not delay
//             anybody.
//   Memory    24 KiB, all touched by the constructor. The file remains: the next recorder of the
//             same rank and directory replaces it. A directory in memory (/dev/shm) is best: on a
//             disk, writing pages back may hold a rank up.
//   Threads   one writes operations at a time: the communicator's caller, or its own thread; one
//             writes activities. image() may be called by any, at the same time.
//
// The engine of a communicator (engine.h) records its calls, as native_engine.cc, executor.cc and
// shared_executor.cc show; the communicator records failures. The recorder outlives it and all
// that were split from it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/deadline.h"
#include "lib/collective/algorithm/call.h"
#include "lib/collective/flight/flight_layout.h"
#include "lib/collective/flight/flight_record.h"

namespace gxp {

class FlightRecorder {
 public:
  static constexpr size_t kCapacity = 256;  // operations

  // With a directory, which is created if missing, keeps the record in the file
  // flight_record_path(). Throws kIo. Group 0 is all ranks.
  FlightRecorder(int rank, int world_size, const std::string& directory = "");
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  // This rank belongs to group `group` of `size` ranks; `leader` is the world's rank of the group's
  // rank 0. Its count of operations starts anew.
  void define_group(uint8_t group, int leader, int size) noexcept;

  // An operation begins; the former one is over. `algorithm` is a string that lives as long as the
  // recorder, such as Algorithm::name; of 16 different ones the first 23 bytes are kept.
  // `now`: of Deadline::Clock, if the caller knows it; {}: is read.
  void enter(const Call& call, std::string_view algorithm, uint8_t group = 0,
             Deadline::Clock::time_point now = {}) noexcept;
  void enter(const PeerCall& call, uint8_t group = 0,
             Deadline::Clock::time_point now = {}) noexcept;
  // enter() was given no time; this is the time.
  void entered_at(Deadline::Clock::time_point now) noexcept {
    put(entry_ + flight::kEntered, exact(uint64_t(now.time_since_epoch().count())));
  }
  // It is at its step `index` and waits for rank `waits_for` of the world, -1: for none.
  void step(int index, int waits_for) noexcept {
    put(entry_ + flight::kProgress, flight::join(uint32_t(index), uint32_t(waits_for)));
  }
  // The operation is over. done_at_once() is for callers that only spun: it ended within
  // microseconds, and no clock is read.
  void done_at_once() noexcept { put(entry_ + flight::kLeft, flight::kAtOnce); }
  void done() noexcept { put(entry_ + flight::kLeft, now(left_tick_)); }
  void failed() noexcept { put(entry_ + flight::kLeft, now(left_tick_) | flight::kFailed); }
  // The rank does something else from now on, in its training step `number`; 0: before the first.
  // Its device has held so many bytes at most until now.
  void enter_activity(Activity activity, int64_t number, uint64_t device_peak_bytes = 0) noexcept;

  // The rank that step() named last in this operation; -1: none. For the writer.
  [[nodiscard]] int waits_for() const noexcept {
    return int(flight::high(entry_[flight::kProgress]));
  }

  [[nodiscard]] int rank() const { return rank_; }
  // The record as it is now, for parse_flight_record(). Takes some 10 us.
  [[nodiscard]] std::string image() const;

 private:
  // Release: a reader that sees a store sees those before it. An ordinary store on x86.
  static void put(uint64_t* word, uint64_t value) noexcept {
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }
  // The words of an entry from kCount on.
  using Rest = std::array<uint64_t, 4>;
  void begin(const Rest& rest, Deadline::Clock::time_point now) noexcept;
  uint8_t number_of(std::string_view algorithm) noexcept;
  uint64_t now(uint64_t& tick) noexcept;
  uint64_t exact(uint64_t ns) noexcept;
  void write_header(int world_size);
  [[nodiscard]] flight::Words copy() const;

  const int rank_;
  uint64_t* words_ = nullptr;  // mapped
  uint64_t* entry_ = nullptr;  // of the operation under way; before the first, a slot to spare
  uint64_t number_ = 0;        // operations so far
  uint64_t entered_tick_ = 0;  // the ticks at which the exact clock was read last
  uint64_t left_tick_ = 0;
  uint64_t last_ns_ = 0;
  struct Group {
    uint32_t leader = 0;
    uint32_t since = 0;
  };
  std::array<Group, flight::kGroups> groups_{};
  std::array<const char*, flight::kNames> names_{};
  uint8_t name_count_ = 0;
};

}  // namespace gxp
