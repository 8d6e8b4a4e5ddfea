#include "lib/collective/flight/flight_record.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/collective/flight/flight_layout.h"
#include "lib/transport/context.h"

namespace gxp {
namespace flight {

std::string settle(const Words& before, Words middle, const Words& after) {
  for (size_t at = kRingAt; at + kEntryWords <= middle.size(); at += kEntryWords) {
    if (before[at] != after[at]) middle[at] = 1;
  }
  return {reinterpret_cast<const char*>(middle.data()), middle.size() * sizeof(uint64_t)};
}

}  // namespace flight

namespace {

constexpr uint64_t kMaxNs = uint64_t{1} << 62;  // so that differences of times do not overflow
constexpr uint64_t kMaxSteps = uint64_t{1} << 62;
constexpr uint64_t kMaxBytes = uint64_t{1} << 62;
constexpr uint32_t kMaxWorldSize = 1 << 20;
constexpr size_t kWordBytes = sizeof(uint64_t);

uint64_t word_at(std::string_view image, size_t index) {
  uint64_t word = 0;
  std::memcpy(&word, image.data() + index * kWordBytes, kWordBytes);
  return word;
}

// Up to the first zero; what a terminal might take for a command becomes '?'.
std::string text_at(std::string_view image, size_t index, size_t words) {
  std::string text(image.substr(index * kWordBytes, words * kWordBytes));
  text.resize(std::min(text.find('\0'), text.size()));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

// One slot of the ring.
class Slot {
 public:
  Slot(std::string_view image, size_t index)
      : image_(image), at_(flight::kRingAt + index * flight::kEntryWords) {}
  [[nodiscard]] uint64_t stamp() const { return word(flight::kStamp); }
  // Nothing if a value is impossible.
  [[nodiscard]] std::optional<FlightEntry> read() const;

 private:
  [[nodiscard]] uint64_t word(size_t index) const { return word_at(image_, at_ + index); }
  [[nodiscard]] uint8_t what(size_t byte) const {
    return uint8_t(word(flight::kWhat) >> (8 * byte));
  }
  [[nodiscard]] std::optional<Call> call() const;
  [[nodiscard]] std::optional<PeerCall> peer_call() const;

  std::string_view image_;
  size_t at_;
};

std::optional<FlightEntry> Slot::read() const {
  FlightEntry entry;
  const uint64_t left = word(flight::kLeft) & ~flight::kFailed;
  if (word(flight::kEntered) >= kMaxNs || left >= kMaxNs) return std::nullopt;
  if (const auto collective = call()) {
    entry.call = *collective;
    entry.leader = int(flight::low(word(flight::kLeader)));
  } else if (const auto message = peer_call()) {
    entry.call = *message;
  } else {
    return std::nullopt;
  }
  entry.number = stamp() / 2 - 1;
  entry.group = what(0);
  if (what(4) < std::min<uint64_t>(word_at(image_, flight::kNameCountAt), flight::kNames))
    entry.algorithm =
        text_at(image_, flight::kNamesAt + flight::kNameWords * what(4), flight::kNameWords);
  entry.entered_ns = int64_t(word(flight::kEntered));
  entry.entered_exactly = (word(flight::kEntered) & flight::kExact) != 0;
  entry.left_ns = left == flight::kAtOnce ? entry.entered_ns : int64_t(left);
  entry.left_exactly = (left & flight::kExact) != 0;
  if (left != 0) entry.state = FlightEntry::State::kDone;
  if (left != word(flight::kLeft)) entry.state = FlightEntry::State::kFailed;
  entry.step = int(flight::low(word(flight::kProgress)));
  entry.waits_for = int(flight::high(word(flight::kProgress)));
  return entry;
}

std::optional<Call> Slot::call() const {
  if (what(1) > uint8_t(Collective::kBarrier) || what(2) > uint8_t(DType::kU8) ||
      what(3) > uint8_t(ReduceOp::kLogicalXor))
    return std::nullopt;
  return Call{.collective = Collective(what(1)),
              .dtype = DType(what(2)),
              .op = ReduceOp(what(3)),
              .count = word(flight::kCount),
              .root = int(flight::high(word(flight::kSequence))),
              .sequence = flight::low(word(flight::kSequence))};
}

std::optional<PeerCall> Slot::peer_call() const {
  if (what(1) < flight::kPeerCalls ||
      what(1) > flight::kPeerCalls + uint8_t(PeerCall::Kind::kMessages))
    return std::nullopt;
  return PeerCall{.kind = PeerCall::Kind(what(1) - flight::kPeerCalls),
                  .to = int(flight::high(word(flight::kSequence))),
                  .from = int(flight::low(word(flight::kLeader))),
                  .count = word(flight::kCount),
                  .sequence = flight::low(word(flight::kSequence))};
}

// The number of slots.
size_t check_header(std::string_view image, std::string_view source) {
  const auto refuse = [&](std::string_view why) {
    fail(ErrorKind::kCorrupt, "read the flight record {}: {}", source, why);
  };
  if (image.size() < flight::kRingAt * kWordBytes) refuse("it is too short");
  if (word_at(image, flight::kMagicAt) != flight::kMagic) refuse("it is not a flight record");
  const uint64_t version = word_at(image, flight::kVersionAt);
  if (flight::low(version) != flight::kVersion)
    refuse(fmt::format("it has version {}, this gxp reads {}", flight::low(version),
                       flight::kVersion));
  const size_t capacity = flight::high(version);
  if (capacity == 0 || capacity > flight::kMaxCapacity ||
      image.size() != flight::words_of(capacity) * kWordBytes)
    refuse(fmt::format("{} B do not fit {} operations", image.size(), capacity));
  const uint64_t rank = word_at(image, flight::kRankAt);
  if (flight::high(rank) > kMaxWorldSize || flight::low(rank) >= flight::high(rank))
    refuse(fmt::format("rank {} of {}", flight::low(rank), flight::high(rank)));
  if (word_at(image, flight::kActivityAt) >= kActivityNames.size() ||
      word_at(image, flight::kStepAt) >= kMaxSteps)
    refuse("the activity is impossible");
  for (const size_t at : {flight::kWallAt, flight::kMonotonicAt, flight::kTakenAt, flight::kSinceAt,
                          flight::kDataAt}) {
    if (word_at(image, at) >= kMaxNs) refuse("a time is impossible");
  }
  for (const size_t at : {flight::kHostPeakAt, flight::kDevicePeakAt}) {
    if (word_at(image, at) >= kMaxBytes) refuse("a size is impossible");
  }
  return capacity;
}

void read_groups(FlightRecord& record, std::string_view image) {
  for (size_t group = 0; group < flight::kGroups; ++group) {
    const uint64_t entered = word_at(image, flight::kGroupsAt + 2 * group);
    const uint64_t members = word_at(image, flight::kGroupsAt + 2 * group + 1);
    if (members != 0)
      record.groups[int(group)] = {flight::low(entered), flight::high(entered),
                                   int(flight::low(members)), int(flight::high(members))};
  }
}

void read_ring(FlightRecord& record, std::string_view image, size_t capacity) {
  for (size_t index = 0; index < capacity; ++index) {
    const Slot slot(image, index);
    if (slot.stamp() == 0) continue;
    const bool whole = slot.stamp() % 2 == 0 && (slot.stamp() / 2 - 1) % capacity == index;
    auto entry = whole ? slot.read() : std::nullopt;
    if (entry) record.entries.push_back(std::move(*entry));
    if (!entry) ++record.unreadable;
  }
  auto& entries = record.entries;
  std::sort(entries.begin(), entries.end(),
            [](const FlightEntry& a, const FlightEntry& b) { return a.number < b.number; });
  const auto lapped = [&](const FlightEntry& entry) {
    return entry.number + capacity <= entries.back().number;
  };
  const auto first = std::find_if_not(entries.begin(), entries.end(), lapped);
  record.unreadable += size_t(first - entries.begin());
  entries.erase(entries.begin(), first);
}

flight::Words read_words(int fd, size_t count, const std::string& act) {
  flight::Words words(count);
  const ssize_t bytes = ::pread(fd, words.data(), count * kWordBytes, 0);
  check_sys(bytes, act);
  words.resize(size_t(bytes) / kWordBytes);
  return words;
}

int64_t newest_time(const FlightRecord& record) {
  int64_t newest = 0;
  for (const FlightEntry& entry : record.entries)
    newest = std::max({newest, entry.entered_ns, entry.left_ns});
  return newest;
}

double seconds(int64_t ns) { return double(std::max<int64_t>(ns, 0)) / 1e9; }

std::string describe_progress(const FlightEntry& entry) {
  std::string text = entry.algorithm;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (entry.step >= 0) add(fmt::format("step {}", entry.step));
  if (entry.waits_for >= 0) add(fmt::format("waiting for rank {}", entry.waits_for));
  return text.empty() ? "" : " (" + text + ")";
}

std::string describe_state(const FlightRecord& record, const FlightEntry& entry) {
  if (entry.state == FlightEntry::State::kRunning)
    return fmt::format("for {:.1f} s{}", seconds(record.taken_ns - entry.entered_ns),
                       describe_progress(entry));
  return fmt::format("{} {:.1f} s before",
                     entry.state == FlightEntry::State::kFailed ? "failed" : "ended",
                     seconds(record.taken_ns - entry.left_ns));
}

}  // namespace

std::string flight_record_path(const std::string& directory, int rank) {
  return fmt::format("{}/rank-{}.flight", directory, rank);
}

FlightRecord parse_flight_record(std::string_view image, std::string_view source) {
  const size_t capacity = check_header(image, source);
  FlightRecord record;
  record.rank = int(flight::low(word_at(image, flight::kRankAt)));
  record.world_size = int(flight::high(word_at(image, flight::kRankAt)));
  record.process = int64_t(word_at(image, flight::kProcessAt));
  record.host = text_at(image, flight::kHostAt, flight::kHostWords);
  record.host_name = text_at(image, flight::kHostNameAt, flight::kHostWords);
  record.activity = Activity(word_at(image, flight::kActivityAt));
  record.step = int64_t(word_at(image, flight::kStepAt));
  record.activity_since_ns = int64_t(word_at(image, flight::kSinceAt));
  record.data_ns = int64_t(word_at(image, flight::kDataAt));
  record.host_peak_bytes = int64_t(word_at(image, flight::kHostPeakAt));
  record.device_peak_bytes = int64_t(word_at(image, flight::kDevicePeakAt));
  record.wall_offset_ns =
      int64_t(word_at(image, flight::kWallAt)) - int64_t(word_at(image, flight::kMonotonicAt));
  read_groups(record, image);
  read_ring(record, image, capacity);
  record.taken_ns = int64_t(word_at(image, flight::kTakenAt));
  if (record.taken_ns == 0) record.taken_ns = newest_time(record);
  return record;
}

FlightRecord read_flight_record(const std::string& path) {
  const std::string act = "read the flight record " + path;
  const Fd file(int(check_sys(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), act)));
  struct stat status {};
  check_sys(::fstat(file.get(), &status), act);
  const auto bytes = size_t(std::max<off_t>(status.st_size, 0));
  if (!S_ISREG(status.st_mode) || bytes % kWordBytes != 0 ||
      bytes > flight::words_of(flight::kMaxCapacity) * kWordBytes)
    fail(ErrorKind::kCorrupt, "{}: it is not a flight record", act);
  const auto copy = [&] { return read_words(file.get(), bytes / kWordBytes, act); };
  const flight::Words before = copy();
  flight::Words middle = copy();
  const flight::Words after = copy();
  if (before.size() != middle.size() || middle.size() != after.size())
    fail(ErrorKind::kCorrupt, "{}: it shrinks", act);
  const std::string image = flight::settle(before, std::move(middle), after);
  FlightRecord record = parse_flight_record(image, path);
  if (record.host == host_identity() && word_at(image, flight::kTakenAt) == 0)
    record.taken_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  return record;
}

std::vector<FlightRecord> read_flight_records(const std::string& directory) {
  std::vector<FlightRecord> records;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".flight")
      records.push_back(read_flight_record(entry.path().string()));
  }
  const std::string why = error ? error.message() : "there are none";
  if (records.empty()) fail(ErrorKind::kIo, "read the flight records in {}: {}", directory, why);
  std::sort(records.begin(), records.end(),
            [](const FlightRecord& a, const FlightRecord& b) { return a.rank < b.rank; });
  return records;
}

std::string to_string(const PeerCall& call) {
  const auto name = [&](std::string_view kind) {
    return fmt::format("{} {} ({} B", kind, call.sequence, call.count);
  };
  switch (call.kind) {
    case PeerCall::Kind::kSend:
      return fmt::format("{} to rank {})", name("send"), call.to);
    case PeerCall::Kind::kReceive:
      return fmt::format("{} from rank {})", name("receive"), call.from);
    case PeerCall::Kind::kExchange:
      return fmt::format("{} to rank {}, from rank {})", name("exchange"), call.to, call.from);
    case PeerCall::Kind::kMessages:
      return fmt::format("messages {} ({} of them)", call.sequence, call.count);
  }
  return "";
}

std::string describe(const FlightEntry& entry) {
  const std::string call = std::visit([](const auto& what) { return to_string(what); }, entry.call);
  return entry.group == 0 ? call : fmt::format("{} in group {}", call, entry.group);
}

std::string describe_last(const FlightRecord& record) {
  if (record.entries.empty()) return "nothing yet";
  const FlightEntry& last = record.entries.back();
  const bool running = last.state == FlightEntry::State::kRunning;
  return fmt::format("{}{} {}", running ? "in " : "", describe(last), describe_state(record, last));
}

std::string to_text(const FlightRecord& record, size_t limit) {
  const auto& entries = record.entries;
  const int64_t taken_s = (record.taken_ns + record.wall_offset_ns) / 1'000'000'000;
  std::string text = fmt::format(
      "rank {} of {}, process {}, {} operations, at {:%F %T} UTC\n", record.rank, record.world_size,
      record.process, entries.empty() ? 0 : entries.back().number + 1, fmt::gmtime(taken_s));
  for (size_t i = 0; i < std::min(limit, entries.size()); ++i) {
    const FlightEntry& entry = entries[entries.size() - 1 - i];
    text += fmt::format("  {} {}", describe(entry), describe_state(record, entry));
    if (entry.state != FlightEntry::State::kRunning)
      text += fmt::format(", took {:.3f} s{}", seconds(entry.left_ns - entry.entered_ns),
                          describe_progress(entry));
    text += '\n';
  }
  if (record.unreadable > 0) text += fmt::format("  {} unreadable\n", record.unreadable);
  return text;
}

}  // namespace gxp
