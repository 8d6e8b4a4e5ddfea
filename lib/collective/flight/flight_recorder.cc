#include "lib/collective/flight/flight_recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/host_name.h"
#include "lib/transport/context.h"

namespace gxp {
namespace {

constexpr size_t kBytes = flight::words_of(FlightRecorder::kCapacity) * sizeof(uint64_t);

uint64_t read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return uint64_t(time.tv_sec) * 1'000'000'000 + uint64_t(time.tv_nsec);
}

// A file of zeros in place of the former one, whose readers keep what they have opened. The space
// is reserved now: writing to a mapped file on a full disk would kill the process.
Fd make_file(const std::string& directory, int rank, const std::string& act) {
  std::error_code ignored;  // the file cannot be made then, and that error says more
  std::filesystem::create_directories(directory, ignored);
  const std::string path = flight_record_path(directory, rank);
  const std::string fresh = fmt::format("{}.{}", path, getpid());
  const int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
  Fd file(int(check_sys(::open(fresh.c_str(), flags, 0600), act)));
  const int error = posix_fallocate(file.get(), 0, off_t(kBytes));
  if (error == 0 && std::rename(fresh.c_str(), path.c_str()) == 0) return file;
  const std::string cause = system_text(error == 0 ? errno : error);
  ::unlink(fresh.c_str());
  fail(ErrorKind::kIo, "{}: {}", act, cause);
}

void* map_words(int fd, const std::string& act) {
  const int flags = MAP_SHARED | MAP_POPULATE | (fd < 0 ? MAP_ANONYMOUS : 0);
  void* address = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  check_sys(address == MAP_FAILED ? -1 : 0, act);
  return address;
}

// Bytes as zero-padded words.
template <size_t N>
std::array<uint64_t, N> packed(std::string_view text) {
  std::array<uint64_t, N> words{};
  std::memcpy(words.data(), text.data(), std::min(text.size(), sizeof words - 1));
  return words;
}

}  // namespace

FlightRecorder::FlightRecorder(int rank, int world_size, const std::string& directory)
    : rank_(rank) {
  const std::string act = "make a flight recorder" + (directory.empty() ? "" : " in " + directory);
  const Fd file = directory.empty() ? Fd() : make_file(directory, rank, act);
  words_ = static_cast<uint64_t*>(map_words(file.get(), act));
  entry_ = words_ + flight::kRingAt;
  step(-1, -1);
  write_header(world_size);
}

FlightRecorder::~FlightRecorder() { munmap(words_, kBytes); }

void FlightRecorder::write_header(int world_size) {
  const auto host = packed<flight::kHostWords>(host_identity());
  for (size_t i = 0; i < host.size(); ++i) put(words_ + flight::kHostAt + i, host[i]);
  const auto name = packed<flight::kHostWords>(host_name());
  for (size_t i = 0; i < name.size(); ++i) put(words_ + flight::kHostNameAt + i, name[i]);
  put(words_ + flight::kSinceAt, read_clock(CLOCK_MONOTONIC));
  put(words_ + flight::kVersionAt, flight::join(flight::kVersion, kCapacity));
  put(words_ + flight::kRankAt, flight::join(uint32_t(rank_), uint32_t(world_size)));
  put(words_ + flight::kProcessAt, uint64_t(getpid()));
  put(words_ + flight::kWallAt, read_clock(CLOCK_REALTIME));
  put(words_ + flight::kMonotonicAt, read_clock(CLOCK_MONOTONIC));
  define_group(0, 0, world_size);
  put(words_ + flight::kMagicAt, flight::kMagic);
}

void FlightRecorder::define_group(uint8_t group, int leader, int size) noexcept {
  uint64_t* words = words_ + flight::kGroupsAt + size_t{2} * group;
  groups_[group] = {uint32_t(leader), uint32_t(number_)};
  put(words, flight::join(0, uint32_t(number_)));
  put(words + 1, flight::join(uint32_t(leader), uint32_t(size)));
}

void FlightRecorder::enter(const Call& call, std::string_view algorithm, uint8_t group,
                           Deadline::Clock::time_point now) noexcept {
  const uint64_t what = uint64_t{group} | uint64_t(call.collective) << 8 |
                        uint64_t(call.dtype) << 16 | uint64_t(call.op) << 24 |
                        uint64_t{number_of(algorithm)} << 32;
  const Group& own = groups_[group];
  begin({call.count, flight::join(call.sequence, uint32_t(call.root)), what, own.leader}, now);
  put(words_ + flight::kGroupsAt + size_t{2} * group, flight::join(call.sequence + 1, own.since));
}

void FlightRecorder::enter(const PeerCall& call, uint8_t group,
                           Deadline::Clock::time_point now) noexcept {
  const uint64_t what = uint64_t{group} | uint64_t(flight::kPeerCalls + uint8_t(call.kind)) << 8 |
                        uint64_t{flight::kNoName} << 32;
  const uint64_t sequence = flight::join(call.sequence, uint32_t(call.to));
  begin({call.count, sequence, what, uint32_t(call.from)}, now);
}

void FlightRecorder::begin(const Rest& rest, Deadline::Clock::time_point time) noexcept {
  const uint64_t number = number_++;
  const auto known = uint64_t(time.time_since_epoch().count());
  entry_ = words_ + flight::kRingAt + number % kCapacity * flight::kEntryWords;
  put(entry_ + flight::kStamp, 2 * number + 1);
  put(entry_ + flight::kEntered, known != 0 ? exact(known) : now(entered_tick_));
  put(entry_ + flight::kLeft, 0);
  put(entry_ + flight::kProgress, ~uint64_t{0});
  for (size_t i = 0; i < rest.size(); ++i) put(entry_ + flight::kCount + i, rest[i]);
  put(entry_ + flight::kStamp, 2 * number + 2);
}

void FlightRecorder::enter_activity(Activity activity, int64_t number,
                                    uint64_t device_peak_bytes) noexcept {
  const uint64_t time = read_clock(CLOCK_MONOTONIC);
  if (words_[flight::kActivityAt] == uint64_t(Activity::kData))
    put(words_ + flight::kDataAt, words_[flight::kDataAt] + time - words_[flight::kSinceAt]);
  put(words_ + flight::kSinceAt, time);
  put(words_ + flight::kStepAt, uint64_t(number));
  put(words_ + flight::kDevicePeakAt, device_peak_bytes);
  put(words_ + flight::kActivityAt, uint64_t(activity));
}

// Names are told apart by address: comparing texts would cost as much as all the rest.
uint8_t FlightRecorder::number_of(std::string_view algorithm) noexcept {
  for (uint8_t i = 0; i < name_count_; ++i) {
    if (names_[i] == algorithm.data()) return i;
  }
  if (name_count_ == flight::kNames || algorithm.empty()) return flight::kNoName;
  const auto name = packed<flight::kNameWords>(algorithm);
  for (size_t i = 0; i < name.size(); ++i)
    put(words_ + flight::kNamesAt + flight::kNameWords * name_count_ + i, name[i]);
  names_[name_count_] = algorithm.data();
  put(words_ + flight::kNameCountAt, ++name_count_);
  return uint8_t(name_count_ - 1);
}

// The exact clock when the coarse one has moved since it did so for `tick` before; until it moves
// again, that time.
uint64_t FlightRecorder::now(uint64_t& tick) noexcept {
  const uint64_t coarse = read_clock(CLOCK_MONOTONIC_COARSE);
  if (coarse == tick) [[likely]]
    return last_ns_ & ~flight::kExact;
  tick = coarse;
  return exact(read_clock(CLOCK_MONOTONIC));
}

uint64_t FlightRecorder::exact(uint64_t ns) noexcept {
  last_ns_ = std::max(last_ns_, ns);
  return last_ns_ | flight::kExact;
}

flight::Words FlightRecorder::copy() const {
  flight::Words words(kBytes / sizeof(uint64_t));
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = std::atomic_ref(words_[i]).load(std::memory_order_acquire);
  return words;
}

std::string FlightRecorder::image() const {
  const flight::Words before = copy();
  flight::Words middle = copy();
  const flight::Words after = copy();
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  middle[flight::kHostPeakAt] = uint64_t(use.ru_maxrss) * 1024;
  middle[flight::kTakenAt] = read_clock(CLOCK_MONOTONIC);
  return flight::settle(before, std::move(middle), after);
}

}  // namespace gxp
