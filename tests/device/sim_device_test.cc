#include "tests/support/sim_device.h"

#include <array>
#include <deque>
#include <set>
#include <stdexcept>
#include <vector>

#include "tests/catch.h"
#include "tests/support/race_detector.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;
Deadline in_time() { return Deadline::after(30s); }

Access reads(ConstMemory memory) { return {memory.data, memory.bytes, false}; }
Access writes(ConstMemory memory) { return {memory.data, memory.bytes, true}; }

// Two lanes, and gradients that one writes and the other reduces.
struct Lanes {
  explicit Lanes(uint64_t seed = 1) : device(seed) {}
  SimDevice device;
  Buffer buffer = device.allocate(4096, MemoryKind::kGradients);
  Memory gradients = buffer.memory();
  std::unique_ptr<Stream> compute = device.make_stream("compute");
  std::unique_ptr<Stream> communication = device.make_stream("communication");
  std::unique_ptr<Event> ready = device.make_event();
  std::unique_ptr<Event> reduced = device.make_event();
  std::vector<std::string> order;
  std::deque<Work> works;  // keeps its elements where they are

  const Work& work(const std::string& name, std::vector<Access> accesses) {
    return works.emplace_back(Work{name, [this, name] { order.push_back(name); }, accesses});
  }
  const Work& backward() { return work("backward h.0", {writes(gradients.slice(0, 1024))}); }
  const Work& reduce() { return work("all-reduce bucket 1", {writes(gradients)}); }
};

// The report of the race that synchronising throws, or "".
std::string race_in(Lanes& lanes) {
  try {
    lanes.communication->synchronize(in_time());
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInternal);
    return error.what();
  }
}

}  // namespace

TEST_CASE("streams ordered by an event pass, and run in that order, whatever the seed") {
  Lanes lanes(GENERATE(range(0, 50)));
  lanes.compute->submit(lanes.backward());
  lanes.compute->record(*lanes.ready);
  lanes.communication->wait(*lanes.ready);
  lanes.communication->submit(lanes.reduce());
  CHECK(race_in(lanes).empty());
  CHECK(lanes.order == std::vector<std::string>{"backward h.0", "all-reduce bucket 1"});
}

TEST_CASE("a missing event is found, whatever the seed, and everything about it is named") {
  Lanes lanes(GENERATE(range(0, 50)));
  lanes.device.name_memory(lanes.gradients, "gradients");
  lanes.compute->submit(lanes.backward());
  lanes.communication->submit(lanes.reduce());
  CHECK(race_in(lanes) ==
        "race: 'all-reduce bucket 1' on stream 'communication' writes bytes [0, 1024) of "
        "gradients, which 'backward h.0' on stream 'compute' writes, and no event orders them; "
        "record one on 'compute' after 'backward h.0' and wait for it on 'communication' before "
        "'all-reduce bucket 1'");
}

TEST_CASE("a write after a read on another stream needs an event") {
  const bool ordered = GENERATE(false, true);
  Lanes lanes;
  lanes.compute->submit(lanes.work("optimizer", {reads(lanes.gradients)}));
  lanes.compute->record(*lanes.ready);
  if (ordered) lanes.communication->wait(*lanes.ready);
  lanes.communication->submit(lanes.reduce());
  CHECK(race_in(lanes).empty() == ordered);
}

TEST_CASE("a read after a write on another stream needs an event") {
  const bool ordered = GENERATE(false, true);
  Lanes lanes;
  lanes.communication->submit(lanes.reduce());
  lanes.communication->record(*lanes.reduced);
  if (ordered) lanes.compute->wait(*lanes.reduced);
  lanes.compute->submit(lanes.work("optimizer", {reads(lanes.gradients.slice(4095, 1))}));
  CHECK(race_in(lanes).empty() == ordered);
}

TEST_CASE("two reads, and accesses that only touch, need no event") {
  Lanes lanes;
  const Memory low = lanes.gradients.slice(0, 1000);
  const Memory middle = lanes.gradients.slice(1000, 1000);
  lanes.compute->submit(lanes.work("a", {reads(middle), writes(low)}));
  lanes.communication->submit(lanes.work("b", {reads(middle)}));
  lanes.communication->submit(lanes.work("c", {writes(lanes.gradients.slice(2000, 96))}));
  lanes.communication->submit(lanes.work("d", {writes(low.slice(500, 0))}));
  CHECK(race_in(lanes).empty());
}

TEST_CASE("an event orders only what was submitted before it was recorded") {
  Lanes lanes;
  lanes.compute->record(*lanes.ready);
  lanes.compute->submit(lanes.backward());
  lanes.communication->wait(*lanes.ready);
  lanes.communication->submit(lanes.reduce());
  CHECK_FALSE(race_in(lanes).empty());
}

TEST_CASE("events recorded anew in each step order the steps, and one that is left out is found") {
  const bool waits = GENERATE(true, false);
  Lanes lanes(GENERATE(range(0, 20)));
  for (int step = 0; step < 3; ++step) {
    if (waits) lanes.compute->wait(*lanes.reduced);  // step 0: never recorded, so passed
    lanes.compute->submit(lanes.backward());
    lanes.compute->record(*lanes.ready);
    lanes.communication->wait(*lanes.ready);
    lanes.communication->submit(lanes.reduce());
    lanes.communication->record(*lanes.reduced);
  }
  CHECK(race_in(lanes).empty() == waits);
  if (!waits) return;
  REQUIRE(lanes.order.size() == 6);
  for (size_t i = 0; i < 6; i += 2) CHECK(lanes.order[i] == "backward h.0");
}

TEST_CASE("order through a third stream counts") {
  const bool linked = GENERATE(false, true);
  Lanes lanes(GENERATE(range(0, 20)));
  const auto copies = lanes.device.make_stream("copies");
  lanes.compute->submit(lanes.backward());
  lanes.compute->record(*lanes.ready);
  if (linked) copies->wait(*lanes.ready);
  copies->submit(lanes.work("unrelated", {}));
  copies->record(*lanes.reduced);
  lanes.communication->wait(*lanes.reduced);
  lanes.communication->submit(lanes.reduce());
  CHECK(race_in(lanes).empty() == linked);
}

TEST_CASE("synchronising a stream orders what is submitted later, and only that stream's work") {
  const bool both = GENERATE(false, true);
  Lanes lanes;
  lanes.compute->submit(lanes.backward());
  (both ? lanes.compute : lanes.communication)->synchronize(in_time());
  lanes.communication->submit(lanes.reduce());
  CHECK(race_in(lanes).empty() == both);
}

TEST_CASE("a race with any of several readers is found") {
  Lanes lanes;
  const auto third = lanes.device.make_stream("third");
  third->submit(lanes.work("validation", {reads(lanes.gradients.slice(10, 2))}));
  lanes.compute->submit(lanes.work("optimizer", {reads(lanes.gradients)}));
  lanes.compute->record(*lanes.ready);
  lanes.communication->wait(*lanes.ready);
  lanes.communication->submit(lanes.reduce());
  CHECK_THAT(race_in(lanes), Catch::Matchers::Contains("bytes [10, 12) of buffer 1, which "
                                                       "'validation' on stream 'third' reads"));
}

TEST_CASE("freed memory has no history") {
  std::array<std::byte, 64> bytes{};
  RaceDetector races;
  VectorClock one;
  VectorClock two;
  one.tick(0);
  two.tick(1);
  const Work write{"write", [] {}, {writes(memory_of(bytes))}};
  CHECK_FALSE(races.add(write, 0, "first", one).has_value());
  races.forget(memory_of(bytes));
  CHECK_FALSE(races.add(write, 1, "second", two).has_value());
}

TEST_CASE("a seed gives one order, other seeds give others") {
  const auto order = [](uint64_t seed) {
    Lanes lanes(seed);
    for (int i = 0; i < 6; ++i) {
      lanes.compute->submit(lanes.work("a", {}));
      lanes.communication->submit(lanes.work("b", {}));
    }
    lanes.compute->synchronize(in_time());
    lanes.communication->synchronize(in_time());
    return lanes.order;
  };
  std::set<std::vector<std::string>> orders;
  for (uint64_t seed = 0; seed < 50; ++seed) orders.insert(order(seed));
  CHECK(order(7) == order(7));
  CHECK(orders.size() > 20);
}

TEST_CASE("a simulated stream's error skips the work that follows and is thrown once") {
  Lanes lanes;
  const Work bad{"bad", [] { throw std::runtime_error("the cause"); }, {}};
  lanes.communication->submit(bad);
  lanes.communication->submit(lanes.reduce());
  CHECK_THROWS_WITH(lanes.communication->synchronize(in_time()), "the cause");
  CHECK_NOTHROW(lanes.communication->synchronize(in_time()));
  CHECK(lanes.order.empty());
}

TEST_CASE("thousands of works over hundreds of ranges are checked") {
  Lanes lanes;
  for (int step = 0; step < 10; ++step) {
    lanes.compute->wait(*lanes.reduced);
    for (size_t i = 0; i < 400; ++i) {
      lanes.compute->submit(lanes.work("w", {reads(lanes.gradients),  //
                                             writes(lanes.gradients.slice(10 * i, 10))}));
    }
    lanes.compute->record(*lanes.ready);
    lanes.communication->wait(*lanes.ready);
    lanes.communication->submit(lanes.reduce());
    lanes.communication->record(*lanes.reduced);
  }
  CHECK(race_in(lanes).empty());
  CHECK(lanes.order.size() == 4010);
}

}  // namespace gxp
