#include "lib/collective/flight/flight_recorder.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/host_name.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

using namespace gxp;

namespace {

using State = FlightEntry::State;

Call recorded_all_reduce(uint32_t sequence, size_t count = 4096) {
  return {.collective = Collective::kAllReduce,
          .dtype = DType::kF32,
          .op = ReduceOp::kSum,
          .count = count,
          .sequence = sequence};
}

FlightRecord record_of(const FlightRecorder& recorder) {
  return parse_flight_record(recorder.image(), "under test");
}

// The message of the kCorrupt or kIo error that reading `image` as a file ends with, or "".
std::string refusal(const TemporaryDirectory& directory, const std::string& image) {
  const std::string path = directory / "record";
  std::ofstream(path, std::ios::binary) << image;
  try {
    (void)read_flight_record(path);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kCorrupt);
    return error.what();
  }
  return "";
}

void put(std::string& image, size_t word, uint64_t value) {
  std::memcpy(image.data() + word * sizeof value, &value, sizeof value);
}

// An image with operation 0, an all-reduce.
std::string small_image() {
  FlightRecorder recorder(1, 4);
  recorder.enter(recorded_all_reduce(0), "ring");
  return recorder.image();
}

// A child that runs `body` and then waits to be killed, which it is when this returns.
template <class Body>
void run_and_kill(Body body) {
  std::array<int, 2> ready{};
  check_sys(::pipe(ready.data()), "make a pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  CHECK(::read(ready[0], &byte, 1) == 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const int end : ready) ::close(end);
}

}  // namespace

TEST_CASE("what a rank enters, waits for and leaves is in its record", "[collective]") {
  FlightRecorder recorder(2, 4);
  recorder.enter(recorded_all_reduce(0), "halving-doubling");
  recorder.done();
  recorder.define_group(3, 1, 2);
  recorder.enter({.collective = Collective::kBroadcast, .count = 7, .root = 1}, "binomial", 3);
  recorder.failed();
  recorder.enter({.kind = PeerCall::Kind::kExchange, .to = 1, .from = 3, .count = 64});
  recorder.step(5, 3);
  const FlightRecord record = record_of(recorder);
  CHECK((record.rank == 2 && record.world_size == 4 && record.process == getpid()));
  REQUIRE(record.entries.size() == 3);
  const auto& [first, second, third] =
      std::tie(record.entries[0], record.entries[1], record.entries[2]);
  CHECK(describe(first) == "all-reduce 0 (4096 f32, sum)");
  CHECK((first.algorithm == "halving-doubling" && first.state == State::kDone && first.step == -1));
  CHECK((first.entered_ns <= first.left_ns && first.left_ns <= record.taken_ns));
  CHECK(describe(second) == "broadcast 0 (7 u8 from rank 1) in group 3");
  CHECK((second.state == State::kFailed && second.leader == 1));
  CHECK(describe(third) == "exchange 0 (64 B to rank 1, from rank 3)");
  CHECK((third.state == State::kRunning && third.step == 5 && third.waits_for == 3));
  CHECK((record.groups.at(0).entered == 1 && record.groups.at(0).size == 4));
  CHECK((record.groups.at(3).entered == 1 && record.groups.at(3).since == 1));
}

TEST_CASE("what a rank does apart from its operations is in its record", "[collective]") {
  FlightRecorder recorder(1, 2);
  CHECK((record_of(recorder).activity == Activity::kStart && record_of(recorder).step == 0));
  recorder.enter_activity(Activity::kData, 7);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  recorder.enter_activity(Activity::kCompute, 7, 4096);
  const FlightRecord record = record_of(recorder);
  CHECK((record.activity == Activity::kCompute && record.step == 7));
  CHECK((record.data_ns >= 2'000'000 && record.activity_since_ns <= record.taken_ns));
  CHECK((record.host_peak_bytes > 1 << 20 && record.device_peak_bytes == 4096));
  CHECK(record.host_name == host_name());
}

TEST_CASE("the ring keeps the last operations, oldest first", "[collective]") {
  const size_t count = GENERATE(0, 1, 255, 256, 257, 1000);
  CAPTURE(count);
  FlightRecorder recorder(0, 1);
  for (size_t i = 0; i < count; ++i) {
    recorder.enter(recorded_all_reduce(uint32_t(i)), "ring");
    recorder.done();
  }
  const FlightRecord record = record_of(recorder);
  REQUIRE(record.entries.size() == std::min(count, FlightRecorder::kCapacity));
  for (size_t i = 0; i < record.entries.size(); ++i)
    CHECK(record.entries[i].number == count - record.entries.size() + i);
  CHECK(record.unreadable == 0);
  CHECK(record.groups.at(0).entered == count);
}

TEST_CASE("the record of a killed process says what it was doing", "[collective]") {
  const TemporaryDirectory directory;
  const std::string inside = directory / "made/here";
  run_and_kill([&] {
    FlightRecorder recorder(3, 4, inside);
    recorder.enter(recorded_all_reduce(0), "ring");
    recorder.done();
    recorder.enter(recorded_all_reduce(1), "ring");
    recorder.step(2, 1);
  });
  const FlightRecord record = read_flight_record(flight_record_path(inside, 3));
  CHECK(record.rank == 3);
  const std::string last = describe_last(record);
  CHECK(last.starts_with("in all-reduce 1 (4096 f32, sum) for "));
  CHECK(last.ends_with(" s (ring, step 2, waiting for rank 1)"));
  const FlightRecorder next(3, 4, inside);  // of the job's next start
  CHECK(read_flight_record(flight_record_path(inside, 3)).entries.empty());
}

TEST_CASE("a directory that cannot be written is an error that names it", "[collective]") {
  const std::string path = "/proc/no-flights";
  try {
    const FlightRecorder recorder(0, 1, path);
    FAIL("it was made");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kIo);
    CHECK(std::string(error.what()).find(path) != std::string::npos);
  }
}

TEST_CASE("entries that are read while they are written are whole or left out", "[collective]") {
  const TemporaryDirectory directory;
  const bool as_file = GENERATE(false, true);
  FlightRecorder recorder(0, 2, directory.path());
  size_t seen = 0;
  {
    const std::jthread writer([&](const std::stop_token& stop) {
      for (uint32_t i = 0; !stop.stop_requested(); ++i) {
        Call call = recorded_all_reduce(i, i);
        call.root = int(i);
        recorder.enter(call, "ring");
      }
    });
    for (int look = 0; look < 50 || seen == 0; ++look) {
      const FlightRecord record = as_file
                                      ? read_flight_record(flight_record_path(directory.path(), 0))
                                      : record_of(recorder);
      for (const FlightEntry& entry : record.entries) {
        const Call& call = std::get<Call>(entry.call);
        // Assertions are slow; the numbers are 32 bits of one count.
        GXP_ASSERT(call.count == call.sequence && uint32_t(call.root) == call.sequence);
        GXP_ASSERT(uint32_t(entry.number) == call.sequence);
      }
      seen += record.entries.size();
    }
  }
  CHECK(seen > 0);
}

TEST_CASE("a file that is no flight record is refused with the reason", "[collective]") {
  const TemporaryDirectory directory;
  struct Damage {
    std::string reason;  // "": readable, with one entry unreadable
    std::function<void(std::string&)> apply;
  };
  const auto word = [](size_t at, uint64_t value) {
    return [=](std::string& image) { put(image, at, value); };
  };
  const auto ring = [&](size_t at, uint64_t value) { return word(flight::kRingAt + at, value); };
  const Damage damages[] = {
      {"too short", [](std::string& image) { image.clear(); }},
      {"too short", [](std::string& image) { image.resize(64); }},
      {"not a flight record", [](std::string& image) { image.resize(image.size() - 1); }},
      {"do not fit 256 operations", [](std::string& image) { image.resize(image.size() - 64); }},
      {"do not fit 256 operations", [](std::string& image) { image.resize(image.size() + 64); }},
      {"not a flight record", [](std::string& image) { image.resize(size_t{8} << 20); }},
      {"not a flight record", word(flight::kMagicAt, 0)},
      {"version 1", word(flight::kVersionAt, flight::join(1, 256))},
      {"0 operations", word(flight::kVersionAt, flight::join(3, 0))},
      {"4294967295 operations", word(flight::kVersionAt, flight::join(3, UINT32_MAX))},
      {"rank 4 of 4", word(flight::kRankAt, flight::join(4, 4))},
      {"rank 0 of 0", word(flight::kRankAt, 0)},
      {"time", word(flight::kTakenAt, UINT64_MAX)},
      {"time", word(flight::kWallAt, uint64_t{1} << 62)},
      {"time", word(flight::kSinceAt, UINT64_MAX)},
      {"size", word(flight::kDevicePeakAt, UINT64_MAX)},
      {"activity", word(flight::kActivityAt, kActivityNames.size())},
      {"activity", word(flight::kStepAt, UINT64_MAX)},
      {"", ring(flight::kStamp, 1)},           // killed while writing it
      {"", ring(flight::kStamp, UINT64_MAX)},  // the same
      {"", ring(flight::kStamp, 4)},           // of another slot
      {"", ring(flight::kEntered, UINT64_MAX)},
      {"", ring(flight::kLeft, ~flight::kFailed)},
      {"", ring(flight::kWhat, 9 << 8)},    // no such collective
      {"", ring(flight::kWhat, 68 << 8)},   // no such message
      {"", ring(flight::kWhat, 8 << 16)},   // no such dtype
      {"", ring(flight::kWhat, 12 << 24)},  // no such operator
  };
  for (const Damage& damage : damages) {
    CAPTURE(damage.reason, &damage - damages);
    std::string image = small_image();
    damage.apply(image);
    const std::string why = refusal(directory, image);
    CHECK(why.empty() == damage.reason.empty());
    CHECK(why.find(damage.reason) != std::string::npos);
    if (!why.empty()) continue;
    const FlightRecord record = parse_flight_record(image, "damaged");
    CHECK((record.entries.empty() && record.unreadable == 1));
  }
}

TEST_CASE("no change of bytes makes a record that cannot be shown", "[collective]") {
  std::mt19937 random(1);
  const std::string good = small_image();
  for (int i = 0; i < 2000; ++i) {
    std::string image = good;
    const size_t limit = i % 2 == 0 ? image.size() : (flight::kRingAt + 8) * 8;
    for (int change = 0; change < 8; ++change) image[random() % limit] = char(random());
    try {
      const std::string text = to_text(parse_flight_record(image, "changed"));
      const auto shown = [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; };
      CHECK(std::all_of(text.begin(), text.end(), shown));
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kCorrupt);
    }
  }
}

TEST_CASE("a pipe or a directory in place of a file is refused at once", "[collective]") {
  const TemporaryDirectory directory;
  const std::string pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, directory.path()})
    CHECK_THROWS_AS(read_flight_record(path), Error);
}

TEST_CASE("sixteen algorithms keep their names, more have none", "[collective]") {
  std::vector<std::string> names;
  for (int i = 0; i < 17; ++i) names.push_back(fmt::format("{}-with-a-rather-long-name", i));
  FlightRecorder recorder(0, 1);
  for (uint32_t i = 0; i < 34; ++i) recorder.enter(recorded_all_reduce(i), names[i % 17]);
  const FlightRecord record = record_of(recorder);
  for (size_t i = 0; i < record.entries.size(); ++i)
    CHECK(record.entries[i].algorithm == (i % 17 == 16 ? "" : names[i % 17].substr(0, 23)));
}

TEST_CASE("operations milliseconds apart have exact times", "[collective]") {
  FlightRecorder recorder(0, 1);
  for (uint32_t i = 0; i < 3; ++i) {
    recorder.enter(recorded_all_reduce(i), "ring");
    recorder.done();
    timespec tick{};
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(2 * tick.tv_nsec);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  for (const FlightEntry& entry : record_of(recorder).entries)
    CHECK((entry.entered_exactly && entry.left_exactly));
}

TEST_CASE("a time that the caller knows is taken, and what is done at once has it too",
          "[collective]") {
  FlightRecorder recorder(0, 1);
  const auto now = Deadline::Clock::now();
  recorder.enter(recorded_all_reduce(0), "direct", 0, now);
  recorder.done_at_once();
  const FlightEntry entry = record_of(recorder).entries.at(0);
  CHECK(std::abs(entry.entered_ns - now.time_since_epoch().count()) <= 1);
  CHECK((entry.left_ns == entry.entered_ns && entry.state == State::kDone));
  CHECK((entry.entered_exactly && !entry.left_exactly));
}

TEST_CASE("a record is shown newest first, one line an operation", "[collective]") {
  FlightRecorder recorder(1, 2);
  recorder.enter(recorded_all_reduce(0), "ring");
  recorder.done();
  recorder.enter(recorded_all_reduce(1), "ring");
  recorder.step(3, 0);
  const std::string text = to_text(record_of(recorder));
  CHECK(text.starts_with("rank 1 of 2, process "));
  const size_t newer = text.find("\n  all-reduce 1 (4096 f32, sum) for ");
  const size_t older = text.find("\n  all-reduce 0 (4096 f32, sum) ended ");
  CHECK((newer < older && older != std::string::npos));
  CHECK(text.find("(ring, step 3, waiting for rank 0)") < older);
  CHECK(to_text(record_of(recorder), 1).find("all-reduce 0") == std::string::npos);
}
