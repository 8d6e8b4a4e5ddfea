// The engine mpi against the oracle. Runs under mpirun, on any number of ranks:
//   mpirun -n 3 gxp_mpi_test
#define CATCH_CONFIG_RUNNER  // for Catch2 v2: main() is below
#include "lib/collective/engine/mpi/mpi_engine.h"

#include <cstdio>
#include <cstdlib>
#include <random>

#include "lib/collective/communicator.h"
#include "lib/collective/engine/mpi/mpi_job.h"
#include "tests/catch.h"
#include "tests/collective/calls.h"

using namespace gxp;

namespace {

constexpr DType kTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                            DType::kI64, DType::kI32, DType::kI8,  DType::kU8};

// MPI is started once for all tests, by main().
std::shared_ptr<MpiJob>& job() {
  static std::shared_ptr<MpiJob> started;
  return started;
}

Deadline soon() { return Deadline::after(std::chrono::seconds(30)); }

struct Rank {
  explicit Rank(size_t most_elements = kMpiElements,
                std::chrono::milliseconds timeout = std::chrono::seconds(30))
      : comm(make_mpi_engine(job(), *device, soon(), most_elements), timeout) {}
  std::unique_ptr<Device> device = make_cpu_device();
  Communicator comm;
};

struct Buffers {
  std::vector<std::byte> a = std::vector<std::byte>(size_t{16} << 10);
  std::vector<std::byte> b = std::vector<std::byte>(size_t{16} << 10);
};

std::string check_call(Communicator& comm, Buffers& buffers, Call call) {
  if (call.collective == Collective::kAllToAll)
    call.count -= call.count % size_t(comm.world_size());
  const Memory in = memory_of(buffers.a);
  const std::string problem = run_and_check(comm, call, in, memory_of(buffers.b));
  return problem.empty() ? run_and_check(comm, call, in, in) : problem;
}

std::string check_all_types(Communicator& comm, const Call& call) {
  Buffers buffers;
  for (const DType dtype : kTypes) {
    for (const ReduceOp op : reduce_ops()) {
      Call one = call;
      one.dtype = dtype;
      one.op = op;
      if (!supports(op, dtype) || (!reduces(call.collective) && op != ReduceOp::kSum)) continue;
      if (const std::string problem = check_call(comm, buffers, one); !problem.empty())
        return problem;
    }
  }
  return "";
}

std::vector<int> ranks_of(Communicator& comm) {
  std::vector<int> world(size_t(comm.world_size()), 0);
  MPI_Comm_rank(MPI_COMM_WORLD, &world[size_t(comm.rank())]);
  comm.all_reduce(memory_of(world), DType::kI32, ReduceOp::kSum);
  return world;
}

}  // namespace

TEST_CASE("MPI gives every operation's result in every type, whatever the pieces") {
  const size_t most_elements = GENERATE(kMpiElements, size_t{64});
  Rank rank(most_elements);
  const int world_size = rank.comm.world_size();
  for (const Collective collective : collectives()) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t(world_size) + 1, size_t{257}}) {
      const Call call{
          .collective = collective, .count = count, .root = int(count % size_t(world_size))};
      CHECK(check_all_types(rank.comm, call) == "");
    }
  }
}

TEST_CASE("sums and products of bytes wrap over MPI") {
  Rank rank;
  const auto sum_of = [&](auto value, ReduceOp op, DType dtype) {
    std::vector<decltype(value)> data(100, value);
    rank.comm.all_reduce(memory_of(data), dtype, op);
    return data.back();
  };
  const int ranks = rank.comm.world_size();
  CHECK(sum_of(int8_t{100}, ReduceOp::kSum, DType::kI8) == int8_t(100 * ranks));
  CHECK(sum_of(uint8_t{200}, ReduceOp::kSum, DType::kU8) == uint8_t(200 * ranks));
  CHECK(sum_of(uint8_t{129}, ReduceOp::kProd, DType::kU8) == uint8_t(ranks % 2 == 0 ? 1 : 129));
}

TEST_CASE("random calls in a row, blocking and started, give exact results over MPI") {
  Rank rank;
  Buffers buffers;
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const Call call{.collective = collectives()[random() % collectives().size()],
                    .dtype = DType::kBF16,
                    .count = random() % 4096,
                    .root = int(random() % unsigned(rank.comm.world_size()))};
    CHECK(check_call(rank.comm, buffers, call) == "");
    std::vector<int> ones(10, 1);
    rank.comm.start_all_reduce(memory_of(ones), DType::kI32, ReduceOp::kSum).wait();
    CHECK(ones.back() == rank.comm.world_size());
  }
}

TEST_CASE("messages of a group cross between all ranks of an MPI job") {
  Rank rank(size_t{1} << 10);
  Communicator& comm = rank.comm;
  std::vector<std::vector<int>> arrived(size_t(comm.world_size()), std::vector<int>(1000));
  const std::vector<int> mine(1000, comm.rank());
  comm.begin_group();
  for (int peer = 0; peer < comm.world_size(); ++peer) {
    if (peer == comm.rank()) continue;
    comm.send(peer, memory_of(mine));
    comm.recv(peer, memory_of(arrived[size_t(peer)]));
  }
  comm.end_group();
  for (int peer = 0; peer < comm.world_size(); ++peer)
    if (peer != comm.rank()) CHECK(arrived[size_t(peer)] == std::vector<int>(1000, peer));
}

TEST_CASE("split makes groups of MPI ranks with the same color, ordered by key") {
  Rank rank;
  Communicator& comm = rank.comm;
  const int color = comm.rank() % 2 == 0 ? 0 : -1;
  const auto part = comm.split(color, -comm.rank());
  REQUIRE((part != nullptr) == (color == 0));
  if (!part) return;
  std::vector<int> expected;
  for (int member = (comm.world_size() - 1) / 2 * 2; member >= 0; member -= 2)
    expected.push_back(member);
  CHECK(ranks_of(*part) == expected);
  CHECK(part->hosts().empty());
}

TEST_CASE("an algorithm cannot be asked of MPI") {
  Rank rank;
  CHECK_THROWS_WITH(rank.comm.set_selection({.algorithm = "ring"}),
                    "comm.algorithm = ring: engine 'mpi' chooses for itself; leave it at auto, or "
                    "use engine 'native'");
}

TEST_CASE("ranks that wait for one that does not come fail at the deadline", "[.late]") {
  Rank rank(kMpiElements, std::chrono::milliseconds(200));
  if (rank.comm.rank() > 0) CHECK_THROWS_WITH(rank.comm.barrier(), Catch::Contains("0.2 s"));
  // Rank 0's end takes the others with it only after they have seen the deadline.
  std::vector<int> arrived(1);
  if (rank.comm.rank() == 0) CHECK_THROWS_AS(rank.comm.recv(1, memory_of(arrived)), Error);
}

int main(int argc, char** argv) {
  job() = start_mpi_job();
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* const expected = std::getenv("GXP_TEST_RANKS");
  if (expected != nullptr && ranks != std::atoi(expected)) {
    std::fprintf(stderr, "%d ranks, not %s: mpirun is another MPI's\n", ranks, expected);
    return 1;
  }
  const int result = Catch::Session().run(argc, argv);
  job().reset();
  return result;
}
