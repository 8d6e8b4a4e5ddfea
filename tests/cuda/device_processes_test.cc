// Collectives on the memory of emulated GPUs of several processes, one of which may be killed.
#include <algorithm>
#include <functional>
#include <stdexcept>

#include "lib/collective/engine/device_memory/switch_way.h"
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/cuda/device_ranks.h"
#include "tests/cuda/emulation/cuda_runtime_api.h"
#include "tests/cuda/emulation/multicast.h"
#include "tests/cuda/emulation/streams.h"
#include "tests/cuda/rank_processes.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

// Each rank is a process with a GPU.
class GpuProcesses {
 public:
  using Part = std::function<std::string(Communicator&, GpuRank&, GpuProcesses&)>;

  // Each rank has a GPU of its own, or all have one.
  GpuProcesses(int ranks, const Part& part, bool own_gpus = false,
               const SelectionSettings& selection = {})
      : gpus_(own_gpus ? ranks : 1) {
    ranks_.run("shm", ranks, [&](World& world, int rank) {
      const auto store = world.join_store(rank);
      std::string text;
      {
        const auto host = make_cpu_device();
        Communicator comm(world.join(*store), *host, {.selection = selection, .timeout = 20s});
        GpuRank gpu(comm, own_gpus ? rank : 0);
        text = gpu.joined.support() ? part(comm, gpu, *this) : gpu.joined.support().reason;
      }
      store->close();
      return text;
    });
  }
  [[nodiscard]] RankProcesses& ranks() { return ranks_; }

  // In a rank's process: counts what its GPU is given, or begins, from now on; the process is
  // killed before number `at`.
  void count_works(int rank, int at) {
    emulation::set_work_hook([this, rank, at] {
      if (ranks_.count(rank)++ == at) ranks_.strike();
    });
  }

 private:
  EmulatedGpus gpus_;
  RankProcesses ranks_;
};

struct Scene {
  BufferKind kind;
  Collective collective;
  size_t count;
  bool queued = false;
  bool switched = false;  // by the switch between the GPUs
  int victim = 1;
  [[nodiscard]] int ranks() const { return switched ? SwitchWay::kLeastRanks : 3; }
};

std::vector<KeptMemory> keep(Communicator& comm, Memory memory) {
  std::vector<KeptMemory> kept;
  kept.push_back(comm.keep(memory));
  if (!kept[0].nvls()) throw std::runtime_error(kept[0].nvls().reason);
  return kept;
}

// Runs the scene. `at` < 0: rank `victim` is killed before it calls, if it is one.
std::unique_ptr<GpuProcesses> play(const Scene& scene, int victim, int at) {
  return std::make_unique<GpuProcesses>(
      scene.ranks(),
      [=](Communicator& comm, GpuRank& gpu, GpuProcesses& job) -> std::string {
        const size_t bytes = scene.count * sizeof(float);
        const Buffer shared = gpu.device->allocate_shareable(bytes, MemoryKind::kGradients);
        const Buffer ordinary = gpu.device->allocate(bytes, MemoryKind::kGradients);
        std::vector<KeptMemory> kept;
        if (scene.switched) kept = keep(comm, shared.memory());
        comm.barrier();
        if (comm.rank() == victim && at < 0) job.ranks().strike();
        job.count_works(comm.rank(), comm.rank() == victim ? at : -1);
        const Call call{.collective = scene.collective, .dtype = DType::kF32};
        const Memory data = (scene.kind == BufferKind::kSharedInPlace ? shared : ordinary).memory();
        if (scene.queued) {
          const std::unique_ptr<Stream> stream = gpu.device->make_stream("calls");
          stream->set_watch([&] { comm.check(); });
          const InPlace placed = in_place(call, data, comm.rank(), comm.world_size());
          comm.enqueue(placed.call, placed.input, placed.output, *stream);
          stream->finish(Deadline::after(20s));
        } else {
          comm.run_in_place(call, data);
        }
        emulation::set_work_hook({});
        comm.barrier();
        return "";
      },
      scene.queued || scene.switched, SelectionSettings{.layout_invariant = !scene.switched});
}

void require_ended_soon(RankProcesses& ranks, int count, int victim) {
  REQUIRE(ranks.has_struck());
  for (int rank = 0; rank < count; ++rank) {
    if (rank == victim) continue;
    CHECK(ranks.has_ended(rank));
    CHECK(ranks.text(rank) != "");
    CHECK(ranks.seconds_after_strike(rank) < 5);
  }
}

}  // namespace

TEST_CASE("processes call on the memory of their GPUs with the host's bits") {
  const int world_size = GENERATE(2, 4);
  std::vector<Collective> moving(collectives().begin(), collectives().end());
  std::erase(moving, Collective::kBarrier);
  const auto rows = combinations(moving, std::vector{DType::kF32, DType::kBF16, DType::kI8},
                                 std::vector{ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax},
                                 std::vector<size_t>{100, 4004, 400000}, buffer_kinds());
  const bool queued = GENERATE(false, true);
  const auto part = [&](Communicator& comm, GpuRank& gpu, GpuProcesses&) {
    GpuBuffers buffers(*gpu.device, 1600000);
    const std::unique_ptr<Stream> stream = gpu.device->make_stream("calls");
    if (comm.queues_calls()) buffers.queue_on(*stream);
    if (comm.queues_calls() != queued) return std::string("calls are queued, or not");
    std::string problem;
    for (const auto& [collective, dtype, op, count, kind] : rows) {
      if (problem.empty())
        problem = buffers.compare(comm,
                                  {.collective = collective,
                                   .dtype = dtype,
                                   .op = reduces(collective) ? op : ReduceOp::kSum,
                                   .count = count,
                                   .root = 1},
                                  kind);
    }
    return problem.empty() ? "done" : problem;
  };
  GpuProcesses job(world_size, part, queued);
  for (int rank = 0; rank < world_size; ++rank) CHECK(job.ranks().text(rank) == "done");
}

TEST_CASE("a rank that is killed at any work of its GPU ends the others soon") {
  const Scene scene = GENERATE(
      values<Scene>({{BufferKind::kSharedInPlace, Collective::kAllReduce, 3000, false, false, 0},
                     {BufferKind::kOrdinaryInPlace, Collective::kAllReduce, 3000},
                     {BufferKind::kOrdinaryInPlace, Collective::kAllReduce, 1200000},
                     {BufferKind::kSharedInPlace, Collective::kAllGather, 3000},
                     {BufferKind::kSharedInPlace, Collective::kAllReduce, 3000, true},
                     {BufferKind::kOrdinaryInPlace, Collective::kAllReduce, 3000, true},
                     {BufferKind::kSharedInPlace, Collective::kAllReduce, 3000, false, true},
                     {BufferKind::kSharedInPlace, Collective::kAllReduce, 3000, true, true}}));
  const int works = play(scene, -1, 0)->ranks().count(scene.victim);
  REQUIRE(works > 1);
  for (int at = -1; at < works; at += std::max(1, works / 6)) {
    CAPTURE(int(scene.kind), to_string(scene.collective), scene.count, works, at);
    const auto job = play(scene, scene.victim, at);
    require_ended_soon(job->ranks(), scene.ranks(), scene.victim);
  }
}

TEST_CASE(
    "of ranks that share a GPU, the first folds for all and the others' processes give it no "
    "work") {
  const Scene scene{BufferKind::kSharedInPlace,
                    GENERATE(Collective::kAllReduce, Collective::kReduce), 3000};
  const auto job = play(scene, -1, 0);
  CHECK(job->ranks().count(0) > 0);
  for (int rank = 1; rank < scene.ranks(); ++rank) CHECK(job->ranks().count(rank) == 0);
}

TEST_CASE("processes add by the switch between their GPUs") {
  constexpr int kRanks = 4;
  GpuProcesses job(kRanks,
                   [](Communicator& comm, GpuRank& gpu, GpuProcesses&) -> std::string {
                     std::vector<float> values(3001, float(comm.rank() + 1));
                     const Buffer buffer = gpu.device->allocate_shareable(memory_of(values).bytes,
                                                                          MemoryKind::kGradients);
                     gpu.device->copy(buffer.memory(), memory_of(values));
                     const std::vector<KeptMemory> kept = keep(comm, buffer.memory());
                     comm.all_reduce(buffer.memory(), DType::kF32, ReduceOp::kSum);
                     gpu.device->copy(memory_of(values), buffer.memory());
                     comm.barrier();
                     return values == std::vector<float>(3001, 1 + 2 + 3 + 4) ? "exact" : "wrong";
                   },
                   true, {.layout_invariant = false});
  for (int rank = 0; rank < kRanks; ++rank) CHECK(job.ranks().text(rank) == "exact");
}

TEST_CASE("a rank that is killed while the switch is set up ends the others soon") {
  using enum emulation::MulticastCall;
  const auto [victim, call] = GENERATE(table<int, emulation::MulticastCall>(
      {{0, kSupport}, {0, kCreate}, {0, kExport}, {1, kImport}, {1, kAdd}, {2, kBind}, {0, kMap}}));
  CAPTURE(victim, int(call));
  constexpr int kRanks = 4;
  GpuProcesses job(
      kRanks,
      [&, victim = victim, call = call](Communicator& comm, GpuRank& gpu, GpuProcesses& processes) {
        const Buffer buffer = gpu.device->allocate_shareable(4096, MemoryKind::kGradients);
        if (comm.rank() == victim)
          emulation::set_multicast_hook([&](emulation::MulticastCall made) {
            if (made == call) processes.ranks().strike();
            return CUDA_SUCCESS;
          });
        const std::vector<KeptMemory> kept = keep(comm, buffer.memory());
        return std::string();
      },
      true, {.layout_invariant = false});
  require_ended_soon(job.ranks(), kRanks, victim);
}

}  // namespace gxp
