// Collectives on the memory of emulated GPUs of several processes, one of which may be killed.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <new>

#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/cuda/device_ranks.h"
#include "tests/cuda/emulation/streams.h"
#include "tests/transport/worlds.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

double now() {
  return std::chrono::duration<double>(Deadline::Clock::now().time_since_epoch()).count();
}

// Each rank is a process with a GPU; what its part came to.
class GpuProcesses {
 public:
  struct Ending {
    std::atomic<bool> ended;
    double seconds;
    int works;                    // that the GPU was given, or began, since count_works()
    std::array<char, 1024> text;  // what the part returned or threw
  };
  struct Board {  // in memory that all processes see
    std::array<Ending, 8> ranks;
    std::atomic<double> struck_s;
  };
  using Part = std::function<std::string(Communicator&, GpuRank&, GpuProcesses&)>;

  // Each rank has a GPU of its own, or all have one.
  GpuProcesses(int ranks, Part part, bool own_gpus = false)
      : part_(std::move(part)), own_gpus_(own_gpus) {
    set_emulated_gpus(own_gpus ? ranks : 1, true);
    void* pages =
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board_ = new (pages) Board{};
    std::vector<pid_t> processes;
    World world("shm", ranks, [&](World& early) {
      for (int rank = 0; rank < ranks; ++rank) {
        processes.push_back(fork());
        if (processes.back() == 0) be_rank(early, rank);
      }
    });
    for (const pid_t process : processes) waitpid(process, nullptr, 0);
  }
  GpuProcesses(const GpuProcesses&) = delete;
  GpuProcesses& operator=(const GpuProcesses&) = delete;
  ~GpuProcesses() {
    set_emulated_gpus(1, true);
    munmap(board_, sizeof(Board));
  }

  [[nodiscard]] Board& board() { return *board_; }
  [[nodiscard]] std::string text(int rank) const { return board_->ranks[size_t(rank)].text.data(); }

  // In a rank's process: from now on; this process is killed before number `at`.
  void count_works(int rank, int at) {
    emulation::set_work_hook([this, rank, at] {
      if (board_->ranks[size_t(rank)].works++ == at) strike();
    });
  }
  void strike() {
    board_->struck_s = now();
    ::kill(::getpid(), SIGKILL);
  }

 private:
  [[noreturn]] void be_rank(World& world, int rank) {
    std::string text;
    try {
      const auto store = world.join_store(rank);
      {
        const auto host = make_cpu_device();
        Communicator comm(world.join(*store), *host, {.timeout = 20s});
        GpuRank gpu(comm, own_gpus_ ? rank : 0);
        text = gpu.joined.support() ? part_(comm, gpu, *this) : gpu.joined.support().reason;
      }
      store->close();
    } catch (const std::exception& error) {
      text = error.what();
    }
    emulation::set_work_hook({});
    Ending& ending = board_->ranks[size_t(rank)];
    ending.seconds = now();
    text.copy(ending.text.data(), ending.text.size() - 1);
    ending.ended = true;
    ::_exit(0);
  }

  Part part_;
  bool own_gpus_;
  Board* board_;
};

struct Scene {
  BufferKind kind;
  Collective collective;
  size_t count;
  bool queued = false;
};

// Runs the scene on three ranks. `at` < 0: rank `victim` is killed before it calls, if it is one.
std::unique_ptr<GpuProcesses> play(const Scene& scene, int victim, int at) {
  return std::make_unique<GpuProcesses>(
      3,
      [=](Communicator& comm, GpuRank& gpu, GpuProcesses& job) -> std::string {
        const size_t bytes = scene.count * sizeof(float);
        const Buffer shared = gpu.device->allocate_shareable(bytes, MemoryKind::kGradients);
        const Buffer ordinary = gpu.device->allocate(bytes, MemoryKind::kGradients);
        comm.barrier();
        if (comm.rank() == victim && at < 0) job.strike();
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
      scene.queued);
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
  const GpuProcesses job(world_size, part, queued);
  for (int rank = 0; rank < world_size; ++rank) CHECK(job.text(rank) == "done");
}

TEST_CASE("a rank that is killed at any work of its GPU ends the others soon") {
  const Scene scene =
      GENERATE(values<Scene>({{BufferKind::kSharedInPlace, Collective::kAllReduce, 3000},
                              {BufferKind::kOrdinaryInPlace, Collective::kAllReduce, 3000},
                              {BufferKind::kOrdinaryInPlace, Collective::kAllReduce, 1200000},
                              {BufferKind::kSharedInPlace, Collective::kAllGather, 3000},
                              {BufferKind::kSharedInPlace, Collective::kAllReduce, 3000, true},
                              {BufferKind::kOrdinaryInPlace, Collective::kAllReduce, 3000, true}}));
  constexpr int kVictim = 1;
  const int works = play(scene, -1, 0)->board().ranks[kVictim].works;
  REQUIRE(works > 1);
  for (int at = -1; at < works; at += std::max(1, works / 6)) {
    CAPTURE(int(scene.kind), to_string(scene.collective), scene.count, works, at);
    const auto job = play(scene, kVictim, at);
    GpuProcesses::Board& board = job->board();
    REQUIRE(board.struck_s > 0);
    for (const int rank : {0, 2}) {
      CHECK(board.ranks[size_t(rank)].ended);
      CHECK(job->text(rank) != "");
      CHECK(board.ranks[size_t(rank)].seconds - board.struck_s < 5);
    }
  }
}

}  // namespace gxp
