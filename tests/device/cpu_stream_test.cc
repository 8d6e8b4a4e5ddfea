#include "lib/device/cpu_stream.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <future>
#include <stdexcept>
#include <vector>

#include "lib/base/log.h"
#include "tests/catch.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;
Deadline soon() { return Deadline::after(30s); }

Work work(std::string name, std::function<void()> run) {
  return {std::move(name), std::move(run), {}};
}

// A gate that a work waits at until the test opens it.
struct Gate {
  std::promise<void> opened;
  Work stop = work("gate", [this] { opened.get_future().wait_for(30s); });
};

}  // namespace

TEST_CASE("a stream runs its work in the order of submission") {
  const auto stream = make_cpu_stream("compute");
  std::vector<int> seen;
  std::vector<Work> works;
  for (int i = 0; i < 1000; ++i) works.push_back(work("w", [&seen, i] { seen.push_back(i); }));
  for (const Work& each : works) stream->submit(each);
  stream->synchronize(soon());
  REQUIRE(seen.size() == 1000);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
}

TEST_CASE("work after a wait starts only after the event's point") {
  const auto compute = make_cpu_stream("compute");
  const auto communication = make_cpu_stream("communication");
  const auto ready = make_cpu_event();
  Gate gate;
  int gradient = 0;
  int reduced = 0;
  const Work backward = work("backward", [&] { gradient = 21; });
  const Work reduce = work("all-reduce", [&] { reduced = 2 * gradient; });
  compute->submit(gate.stop);
  compute->submit(backward);
  compute->record(*ready);
  communication->wait(*ready);
  communication->submit(reduce);
  gate.opened.set_value();
  communication->synchronize(soon());
  CHECK(reduced == 42);
}

TEST_CASE("an event recorded anew in each step stands for the new point") {
  const auto first = make_cpu_stream("first");
  const auto second = make_cpu_stream("second");
  const auto done = make_cpu_event();
  const auto used = make_cpu_event();
  int value = 0;
  std::vector<int> seen;
  const Work add = work("add", [&] { ++value; });
  const Work look = work("look", [&] { seen.push_back(value); });
  for (int step = 0; step < 200; ++step) {
    first->wait(*used);
    first->submit(add);
    first->record(*done);
    second->wait(*done);
    second->submit(look);
    second->record(*used);
  }
  second->synchronize(soon());
  REQUIRE(seen.size() == 200);
  for (int step = 0; step < 200; ++step) CHECK(seen[size_t(step)] == step + 1);
}

TEST_CASE("an event that was never recorded holds nobody up") {
  const auto stream = make_cpu_stream("compute");
  const auto event = make_cpu_event();
  stream->wait(*event);
  CHECK_NOTHROW(stream->synchronize(soon()));
}

TEST_CASE("an error skips the work that follows, still passes events, and is thrown once") {
  const auto failing = make_cpu_stream("failing");
  const auto waiting = make_cpu_stream("waiting");
  const auto event = make_cpu_event();
  int runs = 0;
  const Work bad = work("bad", [] { throw std::runtime_error("the cause"); });
  const Work count = work("count", [&] { ++runs; });
  failing->submit(bad);
  failing->submit(count);
  failing->record(*event);
  waiting->wait(*event);
  CHECK_NOTHROW(waiting->synchronize(soon()));
  CHECK_THROWS_WITH(failing->synchronize(soon()), "the cause");
  CHECK(runs == 0);
  failing->submit(count);
  CHECK_NOTHROW(failing->synchronize(soon()));
  CHECK(runs == 1);
}

TEST_CASE("synchronise names the work that is not done at the deadline") {
  const auto stream = make_cpu_stream("compute");
  Gate gate;
  std::promise<void> entered;
  const Work enter = work("enter", [&] { entered.set_value(); });
  stream->submit(enter);
  stream->submit(gate.stop);
  entered.get_future().wait();
  CHECK_THROWS_WITH(stream->synchronize(Deadline::after(20ms)),
                    Catch::Matchers::Contains("stream 'compute'") &&
                        Catch::Matchers::Contains("has not finished after 0.02 s"));
  gate.opened.set_value();
  CHECK_NOTHROW(stream->synchronize(soon()));
}

TEST_CASE("synchronise names no work that is done where the stream waits for another") {
  const auto compute = make_cpu_stream("compute");
  const auto communication = make_cpu_stream("communication");
  const auto ready = make_cpu_event();
  Gate gate;
  std::promise<void> ended;
  const Work reduce = work("all-reduce", [&] { ended.set_value(); });
  compute->submit(gate.stop);
  compute->record(*ready);
  communication->submit(reduce);
  ended.get_future().wait();
  communication->wait(*ready);
  CHECK_THROWS_WITH(communication->synchronize(Deadline::after(20ms)),
                    Catch::Matchers::Contains("what it waits for on another stream"));
  CHECK_THROWS_WITH(compute->synchronize(Deadline::after(20ms)),
                    Catch::Matchers::Contains("'gate' has not finished"));
  gate.opened.set_value();
  CHECK_NOTHROW(communication->synchronize(soon()));
}

TEST_CASE("a stream may be destroyed with work in its queue, and its events are then passed") {
  const auto event = make_cpu_event();
  const Work nothing = work("nothing", [] {});
  {
    const auto stream = make_cpu_stream("short");
    for (int i = 0; i < 100; ++i) stream->submit(nothing);
    stream->record(*event);
  }
  const auto stream = make_cpu_stream("long");
  stream->wait(*event);
  CHECK_NOTHROW(stream->synchronize(soon()));
}

TEST_CASE("a stream's thread has the stream's name and its maker's rank") {
  set_log_rank(5);
  const auto stream = make_cpu_stream("communication");
  set_log_rank(-1);
  std::array<char, 16> name{};
  int rank = 0;
  const Work look = work("look", [&] {
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    rank = log_rank();
  });
  stream->submit(look);
  stream->synchronize(soon());
  CHECK(std::string(name.data()) == "communication");
  CHECK(rank == 5);
}

}  // namespace gxp
