// Whatever goes wrong below an operation over RDMA: it ends soon, and with the cause.
#include <infiniband/verbs.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "lib/collective/flight/flight_recorder.h"
#include "lib/device/device.h"
#include "tests/catch.h"
#include "tests/collective/calls.h"
#include "tests/transport/mishaps.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

constexpr int kRanks = 3;
constexpr size_t kBytes = 300000;

// What happens to rank 1's device, fake1, and the cause that every rank names. When a queue pair
// breaks, its other end may be the first to tell.
struct Fault {
  std::string name;
  void (*strike)(FakeVerbs& fake);
  std::string cause;
};

const std::vector<Fault> kFaults = {
    {"completion error", [](FakeVerbs& it) { it.fail_request(3, IBV_WC_LOC_QP_OP_ERR); },
     "by RDMA from fake"},
    {"lost receives", [](FakeVerbs& it) { it.lose_receives(); }, "by RDMA from fake"},
    {"failed device", [](FakeVerbs& it) { it.tell_event(1, IBV_EVENT_DEVICE_FATAL); },
     "rank 1: fake1 port 1 has failed"},
    // These take 2 s: in vain, rank 1 waits until its peers have its last word.
    {"refused message", [](FakeVerbs& it) { it.fail_calls("post_send", 1, ENOMEM, 3); },
     "rank 1: post a message on fake1"},
    {"lost host", [](FakeVerbs& it) { it.vanish(1, 3); }, "rank 1"},
};
constexpr size_t kQuickFaults = 3;

// Each operation with one of the quick faults, and the first with a lost host too; in the long test
// each with all.
std::vector<std::pair<Collective, Fault>> cases() {
  const bool all = std::getenv("GXP_TEST_COMBINATIONS") != nullptr;
  std::vector<std::pair<Collective, Fault>> chosen;
  for (size_t i = 0; i < collectives().size(); ++i) {
    for (size_t j = 0; j < kFaults.size(); ++j) {
      const bool lost_host = i == 0 && j == kFaults.size() - 1;
      if (all || lost_host || j == i % kQuickFaults)
        chosen.emplace_back(collectives()[i], kFaults[j]);
    }
  }
  return chosen;
}

// Calls in a row, of which some go well before the fault.
void call_until_it_ends(Communicator& comm, Collective collective, const Fault& fault) {
  std::vector<std::byte> in(kBytes);
  std::vector<std::byte> out(kBytes);
  for (int i = 0; i < 1000; ++i) {
    if (i == 3 && comm.rank() == 1) fault.strike(*fake_verbs());
    // So that the others sleep: who never does learns of no event.
    if (i == 5 && comm.rank() == 0) std::this_thread::sleep_for(20ms);
    const Call call{.collective = collective, .dtype = DType::kF32, .count = kBytes / 4, .root = 1};
    const std::string problem = run_and_check(comm, call, memory_of(in), memory_of(out));
    if (!problem.empty()) fail(ErrorKind::kMismatch, "{}", problem);
  }
}

std::vector<std::string> errors_of(Collective collective, const Fault& fault) {
  World world("verbs", kRanks);
  return run_all(kRanks, [&](int rank) {
    FlightRecorder recorder(rank, kRanks);
    const auto store = world.join_store(rank);
    const auto device = make_cpu_device();
    // A host that is lost accuses nobody, so here it is the last to lose its patience.
    const std::chrono::milliseconds timeout = rank == 1 ? 20s : 2s;
    Communicator comm(world.join(*store), *device,
                      {.timeout = timeout, .reporting = {&recorder, store.get()}});
    call_until_it_ends(comm, collective, fault);
    store->close();
  });
}

}  // namespace

TEST_CASE("every operation over RDMA ends with the cause, whatever goes wrong below it") {
  const Mishaps fake;
  if (!fake) return;
  fake->set_devices(kRanks);
  const auto [collective, fault] = GENERATE(from_range(cases()));
  CAPTURE(to_string(collective), fault.name);
  for (const std::string& error : errors_of(collective, fault)) {
    CAPTURE(error);
    CHECK(contains(error, fault.cause));
  }
}
