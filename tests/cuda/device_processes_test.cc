// Collectives on the memory of emulated GPUs of several processes, one of which may be killed.
#include <algorithm>
#include <functional>

#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/cuda/device_ranks.h"
#include "tests/cuda/emulation/cuda_runtime_api.h"
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
  GpuProcesses(int ranks, const Part& part, bool own_gpus = false) : gpus_(own_gpus ? ranks : 1) {
    ranks_.run("shm", ranks, [&](World& world, int rank) {
      const auto store = world.join_store(rank);
      std::string text;
      {
        const auto host = make_cpu_device();
        Communicator comm(world.join(*store), *host, {.timeout = 20s});
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
  int victim = 1;
};

constexpr int kRanks = 3;

// Runs the scene. `at` < 0: rank `victim` is killed before it calls, if it is one.
std::unique_ptr<GpuProcesses> play(const Scene& scene, int victim, int at) {
  return std::make_unique<GpuProcesses>(
      kRanks,
      [=](Communicator& comm, GpuRank& gpu, GpuProcesses& job) -> std::string {
        const size_t bytes = scene.count * sizeof(float);
        const Buffer shared = gpu.device->allocate_shareable(bytes, MemoryKind::kGradients);
        const Buffer ordinary = gpu.device->allocate(bytes, MemoryKind::kGradients);
        comm.barrier();
        if (comm.rank() == victim && at < 0) job.ranks().strike();
        job.count_works(comm.rank(), comm.rank() == victim ? at : -1);
        const Call call{.collective = scene.collective, .dtype = DType::kF32};
        const Memory data = (scene.kind == BufferKind::kSharedInPlace ? shared : ordinary).memory();
        if (scene.queued) {
          const std::unique_ptr<Stream> stream = gpu.device->make_stream("calls");
          stream->set_watch([&] { comm.check(); });
          const PlacedCall placed = in_place(call, data, comm.rank(), comm.world_size());
          comm.enqueue(placed.call, placed.input, placed.output, *stream);
          stream->finish(Deadline::after(20s));
        } else {
          comm.run_in_place(call, data);
        }
        emulation::set_work_hook({});
        comm.barrier();
        return "";
      },
      scene.queued);
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
  const Scene scene =
      GENERATE(values<Scene>({{BufferKind::kSharedInPlace, Collective::kAllReduce, 3000, false, 0},
                              {BufferKind::kOrdinaryInPlace, Collective::kAllReduce, 3000},
                              {BufferKind::kOrdinaryInPlace, Collective::kAllReduce, 1200000},
                              {BufferKind::kSharedInPlace, Collective::kAllGather, 3000},
                              {BufferKind::kSharedInPlace, Collective::kAllReduce, 3000, true},
                              {BufferKind::kOrdinaryInPlace, Collective::kAllReduce, 3000, true}}));
  const int works = play(scene, -1, 0)->ranks().count(scene.victim);
  REQUIRE(works > 1);
  for (int at = -1; at < works; at += std::max(1, works / 6)) {
    CAPTURE(int(scene.kind), to_string(scene.collective), scene.count, works, at);
    const auto job = play(scene, scene.victim, at);
    require_ended_soon(job->ranks(), kRanks, scene.victim);
  }
}

TEST_CASE(
    "of ranks that share a GPU, the first folds for all and the others' processes give it no "
    "work") {
  const Scene scene{BufferKind::kSharedInPlace,
                    GENERATE(Collective::kAllReduce, Collective::kReduce), 3000};
  const auto job = play(scene, -1, 0);
  CHECK(job->ranks().count(0) > 0);
  for (int rank = 1; rank < kRanks; ++rank) CHECK(job->ranks().count(rank) == 0);
}

}  // namespace gxp
