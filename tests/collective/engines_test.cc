// The table of engines, and engine nccl over a library that stands for NCCL (fake_nccl.cc).
#include "lib/collective/engine/table/engines.h"

#include <atomic>
#include <optional>

#include "lib/collective/communicator.h"
#include "lib/collective/engine/nccl/nccl_engine.h"
#include "tests/catch.h"
#include "tests/collective/calls.h"
#include "tests/collective/fake_nccl.h"
#include "tests/transport/worlds.h"

using namespace gxp;

namespace {

constexpr DType kTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                            DType::kI64, DType::kI32, DType::kI8,  DType::kU8};

// A GPU that is the CPU.
class HostQueue final : public NcclQueue {
 public:
  [[nodiscard]] Device& device() override { return *device_; }
  [[nodiscard]] NcclStream stream() override { return nullptr; }
  void copy(Memory to, ConstMemory from) override { std::memcpy(to.data, from.data, to.bytes); }
  [[nodiscard]] bool done() override { return true; }
  [[nodiscard]] std::unique_ptr<NcclMark> mark() override { return nullptr; }
  void follow(Stream& /*stream*/) override {}
  void precede(Stream& /*stream*/) override {}

 private:
  std::unique_ptr<Device> device_ = make_cpu_device();
};

// body(communicator) on every rank over engine nccl; what they threw or returned, "" for nothing.
std::vector<std::string> run_over_nccl(int world_size,
                                       const std::function<std::string(Communicator&)>& body,
                                       std::chrono::milliseconds timeout = std::chrono::seconds(20),
                                       const char* file = GXP_FAKE_NCCL,
                                       const CtaLimits& ctas = {}) {
  const NcclLibrary library(file);
  World world("nccl", world_size);
  std::vector<std::string> problems(static_cast<size_t>(world_size));
  const auto errors = run_all(world_size, [&](int rank) {
    const auto store = world.join_store(rank);
    const auto device = make_cpu_device();
    Communicator comm(make_nccl_engine({.library = library,
                                        .queue = std::make_unique<HostQueue>(),
                                        .device = *device,
                                        .ctas = ctas},
                                       world.context(*store)),
                      timeout);
    problems[size_t(rank)] = body(comm);
    store->barrier("end", soon());
    store->close();
  });
  for (size_t rank = 0; rank < problems.size(); ++rank) problems[rank] += errors[rank];
  return problems;
}

void require_none(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) REQUIRE(problem == "");
}

bool nccl_has(ReduceOp op) { return op < ReduceOp::kBitAnd; }

// In memory of that kind, apart and in place.
std::string check_call(Communicator& comm, Call call, MemorySpace space) {
  std::vector<std::byte> a(4096);
  std::vector<std::byte> b(4096);
  const Memory in{a.data(), a.size(), space};
  const Memory out{b.data(), b.size(), space};
  if (call.collective == Collective::kAllToAll)
    call.count -= call.count % size_t(comm.world_size());
  const std::string problem = run_and_check(comm, call, in, out);
  return problem.empty() ? run_and_check(comm, call, in, in) : problem;
}

std::string check_everything(Communicator& comm, MemorySpace space) {
  for (const Collective collective : collectives()) {
    for (const DType dtype : kTypes) {
      for (const ReduceOp op : reduce_ops()) {
        if (!nccl_has(op) || (!reduces(collective) && op != ReduceOp::kSum)) continue;
        const size_t count = 1 + 13 * size_t(dtype) + size_t(op);
        const Call call{.collective = collective,
                        .dtype = dtype,
                        .op = op,
                        .count = count,
                        .root = int(count % size_t(comm.world_size()))};
        const std::string problem = check_call(comm, call, space);
        if (!problem.empty()) return problem;
      }
    }
  }
  return "";
}

CommConfig with_engine(const std::string& name) {
  CommConfig comm;
  comm.engine = name;
  return comm;
}

}  // namespace

TEST_CASE("auto is the native engine") {
  CHECK(choose_engine(with_engine("auto")).name == "native");
  CHECK(choose_engine(with_engine("native")).name == "native");
}

TEST_CASE("an engine that cannot serve here is refused with the reason") {
  for (const EngineRow& row : engine_rows()) {
    const Support support = row.probe();
    if (support) continue;
    CHECK_THROWS_WITH(choose_engine(with_engine(std::string(row.name))),
                      fmt::format("engine '{}': {}", row.name, support.reason));
  }
}

TEST_CASE("a misspelt engine is an error with a near match") {
  CHECK_THROWS_WITH(choose_engine(with_engine("ncll")), Catch::Contains("did you mean 'nccl'?"));
}

TEST_CASE("settings of the native engine are refused with another") {
  CommConfig comm = with_engine(GENERATE("mpi", "nccl"));
  comm.transport = "tcp";
  CHECK_THROWS_WITH(choose_engine(comm), Catch::Contains("comm.transport = tcp: engine"));
  comm.algorithm = "ring";
  CHECK_THROWS_WITH(choose_engine(comm), Catch::Contains("comm.algorithm = ring: engine"));
}

TEST_CASE("NCCL's version codes have two schemes") {
  CHECK(to_string(parse_nccl_version(2708)) == "2.7.8");
  CHECK(to_string(parse_nccl_version(2804)) == "2.8.4");
  CHECK(to_string(parse_nccl_version(20906)) == "2.9.6");
  CHECK(to_string(parse_nccl_version(22809)) == "2.28.9");
  CHECK(parse_nccl_version(21301) < kOldestNccl);
}

TEST_CASE("a missing, an old and a strange NCCL are told apart") {
  CHECK_THROWS_WITH(NcclLibrary("libnccl-nowhere.so.2"),
                    Catch::Contains("install it or set LD_LIBRARY_PATH"));
  CHECK_THROWS_WITH(NcclLibrary(GXP_OLDER_NCCL),
                    Catch::Contains("version 2.12.10, gxp needs 2.14.3"));
  CHECK_THROWS_WITH(NcclLibrary("libc.so.6"), Catch::Contains("it has no ncclGetVersion"));
}

TEST_CASE("the NCCL of this machine has all that gxp calls") {
  std::optional<NcclLibrary> library;
  try {
    library.emplace();
  } catch (const Error& error) {
    WARN("skipped: " << error.what());
    return;
  }
  CHECK(library->version() >= kOldestNccl);
}

TEST_CASE("NCCL's failures keep its words and become gxp's kinds") {
  const NcclLibrary library(GXP_FAKE_NCCL);
  CHECK_THROWS_WITH(library.check(NcclResult::kRemoteError, "reduce"),
                    "reduce: fake failure: no cable");
  const auto kind = [&](NcclResult result) {
    try {
      library.check(result, "reduce");
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kCorrupt;
  };
  CHECK(kind(NcclResult::kSystemError) == ErrorKind::kPeer);
  CHECK(kind(NcclResult::kCudaError) == ErrorKind::kDevice);
  CHECK(kind(NcclResult::kInvalidUsage) == ErrorKind::kInternal);
  CHECK(kind(NcclResult::kInProgress) == ErrorKind::kCorrupt);  // no error
}

TEST_CASE("engine nccl gives every operation's result in every type") {
  const int world_size = GENERATE(1, 2, 3, 4);
  const MemorySpace space = GENERATE(MemorySpace::kHost, MemorySpace::kCuda);
  CAPTURE(world_size);
  require_none(
      run_over_nccl(world_size, [&](Communicator& comm) { return check_everything(comm, space); }));
}

TEST_CASE("messages of a group cross between all ranks of engine nccl") {
  require_none(run_over_nccl(3, [](Communicator& comm) -> std::string {
    std::vector<std::vector<int>> arrived(3, std::vector<int>(7));
    const std::vector<int> mine(7, comm.rank());
    comm.begin_group();
    for (int step = 1; step < 3; ++step) {
      const int peer = (comm.rank() + step) % 3;
      comm.send(peer, memory_of(mine));
      comm.recv(peer, memory_of(arrived[size_t(peer)]));
    }
    comm.end_group();
    for (int peer = 0; peer < 3; ++peer)
      if (peer != comm.rank() && arrived[size_t(peer)] != std::vector<int>(7, peer)) return "wrong";
    return "";
  }));
}

TEST_CASE("split makes groups of engine nccl, ordered by key, with and without ncclCommSplit") {
  const char* const file = GENERATE(GXP_FAKE_NCCL, GXP_OLD_NCCL);
  const auto act = [](Communicator& comm) -> std::string {
    const auto part = comm.split(comm.rank() == 1 ? -1 : 0, -comm.rank());
    if ((part == nullptr) != (comm.rank() == 1)) return "not the group that was asked for";
    if (!part) return "";
    std::vector<int> members(3);
    members[size_t(part->rank())] = comm.rank();
    part->all_gather(memory_of(members), DType::kI32);
    return members == std::vector{3, 2, 0} ? "" : "wrong order";
  };
  require_none(run_over_nccl(4, act, std::chrono::seconds(20), file));
}

TEST_CASE("NCCL's communicators have the thread blocks that are set") {
  std::atomic<int> least = 0;
  std::atomic<int> most = 0;
  fake_nccl::Controls controls;
  controls.on_config = [&](const NcclConfig& config) {
    least = config.min_ctas;
    most = config.max_ctas;
  };
  const fake_nccl::ControlledNccl controlled(GXP_FAKE_NCCL, controls);
  const auto barrier = [](Communicator& comm) -> std::string {
    comm.barrier();
    return "";
  };
  require_none(run_over_nccl(2, barrier, std::chrono::seconds(20), GXP_FAKE_NCCL, {4, 16}));
  CHECK(least == 4);
  CHECK(most == 16);
}

TEST_CASE("engine nccl refuses what NCCL cannot reduce") {
  const auto problems = run_over_nccl(1, [](Communicator& comm) -> std::string {
    std::vector<int> data(3);
    CHECK_THROWS_WITH(comm.all_reduce(memory_of(data), DType::kI32, ReduceOp::kBitXor),
                      Catch::Contains("NCCL has no bxor"));
    return "";
  });
  require_none(problems);
}

TEST_CASE("a rank that does not come ends a call of engine nccl at the deadline") {
  const auto act = [](Communicator& comm) -> std::string {
    if (comm.rank() == 0) comm.barrier();
    return "";
  };
  const auto problems = run_over_nccl(2, act, std::chrono::milliseconds(50));
  CHECK_THAT(problems[0], Catch::Contains("barrier 0 at rank 0: wait for the other ranks in NCCL: "
                                          "not done after 0.05 s"));
}

TEST_CASE("abort ends a call of engine nccl") {
  const auto problems = run_over_nccl(2, [](Communicator& comm) -> std::string {
    Pending barrier;
    if (comm.rank() == 0) barrier = comm.start({}, {}, {});
    comm.abort("enough");
    barrier.wait();
    return "";
  });
  CHECK_THAT(problems[0], Catch::Contains("enough"));
}
