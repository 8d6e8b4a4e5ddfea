#include "tests/transport/faulty.h"

#include <string>
#include <vector>

#include "lib/transport/peers/inproc.h"
#include "tests/catch.h"
#include "tests/transport/worlds.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

constexpr size_t kBytes = 64;

// Rank 0 sends three messages under `plan`. Returns its error, rank 1's, and fills `got`.
std::vector<std::string> run_plan(const FaultPlan& plan, std::vector<std::vector<std::byte>>& got) {
  InprocWorld world(2);
  got.clear();
  return run_all(2, [&](int rank) {
    FaultyTransport transport(world.make_transport(rank), plan);
    for (int i = 0; i < 3; ++i) {
      std::vector<std::byte> data = payload(kBytes, 0, 1, i);
      const Ticket ticket = rank == 0 ? transport.send(1, 1, memory_of(std::as_const(data)))
                                      : transport.recv(0, 1, memory_of(data));
      transport.wait(ticket, soon());
      if (rank == 1) got.push_back(data);
    }
  });
}

}  // namespace

TEST_CASE("a plan beyond the last message changes nothing", "[faulty]") {
  std::vector<std::vector<std::byte>> got;
  CHECK(run_plan({Fault::kCut, 3, {}}, got) == std::vector<std::string>(2));
  for (int i = 0; i < 3; ++i) CHECK(got[size_t(i)] == payload(kBytes, 0, 1, i));
}

TEST_CASE("a cut fails both ranks at the planned message", "[faulty]") {
  std::vector<std::vector<std::byte>> got;
  const auto errors = run_plan({Fault::kCut, 1, {}}, got);
  CHECK(got.size() == 1);
  CHECK(contains(errors[0], "cut by the fault plan"));
  CHECK(contains(errors[1], "rank 0 was lost"));
}

TEST_CASE("a truncated message is seen by its receiver", "[faulty]") {
  std::vector<std::vector<std::byte>> got;
  const auto errors = run_plan({Fault::kTruncate, 2, {}}, got);
  CHECK(contains(errors[1], "has 32 bytes, its receiver expects 64"));
}

TEST_CASE("a corrupted message differs in one bit and the others in none", "[faulty]") {
  std::vector<std::vector<std::byte>> got;
  CHECK(run_plan({Fault::kCorrupt, 1, {}}, got) == std::vector<std::string>(2));
  CHECK(got[0] == payload(kBytes, 0, 1, 0));
  auto corrupted = payload(kBytes, 0, 1, 1);
  corrupted[kBytes / 2] ^= std::byte{1};
  CHECK(got[1] == corrupted);
}

TEST_CASE("a delayed message arrives late but whole", "[faulty]") {
  std::vector<std::vector<std::byte>> got;
  const auto start = Deadline::Clock::now();
  CHECK(run_plan({Fault::kDelay, 0, 20ms}, got) == std::vector<std::string>(2));
  CHECK(Deadline::Clock::now() - start >= 20ms);
  CHECK(got[0] == payload(kBytes, 0, 1, 0));
}
