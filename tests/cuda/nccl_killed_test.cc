// A run over engine nccl in several processes, one of which is killed inside a call. The library
// that stands for NCCL never completes what the others wait for.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <new>

#include "lib/train/cuda_backend.h"
#include "tests/catch.h"
#include "tests/cuda/nccl_ranks.h"
#include "tests/temporary_directory.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

double now() {
  return std::chrono::duration<double>(Deadline::Clock::now().time_since_epoch()).count();
}

struct Board {  // in memory that all processes see
  struct Ending {
    std::atomic<bool> ended;
    double seconds;
    std::array<char, 2048> text;
  };
  std::array<Ending, 2> ranks;
  std::atomic<double> struck_s;
};

constexpr int kVictim = 1;

std::string train_rank(World& world, int rank, int killed_at, Board& board) {
  NcclRanks ranks;
  ranks.controls.on_begin = [&](int who, int work) {
    if (who != kVictim || rank != kVictim || work != killed_at) return;
    board.struck_s = now();
    ::kill(::getpid(), SIGKILL);
  };
  const fake_nccl::ControlledNccl controlled(GXP_FAKE_NCCL, ranks.controls);
  const NcclLibrary library(GXP_FAKE_NCCL);
  const RunConfig config = golden_config(
      "gpt2-accum", 2, {"train.steps=12", "model.init=normal", "train.gemm_cache=off"});
  Backend backend = make_cuda_backend(rank, config.train, 1);
  const auto store = world.join_store(rank);
  FlightRecorder recorder(rank, 2);
  connect_diagnosis(*store, nullptr, recorder, "");
  Communicator comm(make_nccl_engine({.library = library,
                                      .queue = make_cuda_queue(*backend.device),
                                      .device = *backend.host_device,
                                      .recorder = &recorder},
                                     world.context(*store)),
                    60s, {&recorder, store.get()});
  Trainer trainer(config, comm, backend);
  trainer.initialise_weights();
  for (int step = 0; step < 12; ++step) trainer.step(false);
  return "it has ended";
}

[[noreturn]] void be_rank(World& world, int rank, int killed_at, Board& board) {
  std::string text;
  try {
    text = train_rank(world, rank, killed_at, board);
  } catch (const std::exception& error) {
    text = error.what();
  }
  Board::Ending& ending = board.ranks[size_t(rank)];
  ending.seconds = now();
  text.copy(ending.text.data(), ending.text.size() - 1);
  ending.ended = true;
  ::_exit(0);
}

}  // namespace

TEST_CASE("a rank that is killed inside a call of NCCL's ends the run of the others within 5 s") {
  const int killed_at = GENERATE(2, 12, 25);
  const TemporaryDirectory folder;
  ::setenv("FAKE_NCCL_BOARD", folder.path().c_str(), 1);
  set_emulated_gpus(2, true);
  void* const pages =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* const board = new (pages) Board{};
  std::vector<pid_t> processes;
  {
    World world("nccl", 2, [&](World& early) {
      for (int rank = 0; rank < 2; ++rank) {
        processes.push_back(fork());
        if (processes.back() == 0) be_rank(early, rank, killed_at, *board);
      }
    });
    for (const pid_t process : processes) waitpid(process, nullptr, 0);
  }
  set_emulated_gpus(1, true);
  ::unsetenv("FAKE_NCCL_BOARD");
  CAPTURE(killed_at);
  REQUIRE(board->struck_s > 0);
  CHECK(board->ranks[0].ended);
  CHECK_THAT(std::string(board->ranks[0].text.data()), Catch::Contains("rank 1: "));
  CHECK(board->ranks[0].seconds - board->struck_s < 5);
  munmap(pages, sizeof(Board));
}

}  // namespace gxp
