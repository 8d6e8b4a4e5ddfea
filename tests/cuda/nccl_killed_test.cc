// A run over engine nccl in several processes, one of which is killed inside a call. The library
// that stands for NCCL never completes what the others wait for.
#include "lib/train/step/cuda_backend.h"
#include "tests/catch.h"
#include "tests/cuda/nccl_ranks.h"
#include "tests/cuda/rank_processes.h"
#include "tests/temporary_directory.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

constexpr int kVictim = 1;

std::string train_rank(World& world, int rank, int killed_at, RankProcesses& processes) {
  NcclRanks ranks;
  ranks.controls.on_begin = [&](int who, int work) {
    if (who == kVictim && rank == kVictim && work == killed_at) processes.strike();
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

}  // namespace

TEST_CASE("a rank that is killed inside a call of NCCL's ends the run of the others within 5 s") {
  const int killed_at = GENERATE(2, 12, 25);
  const TemporaryDirectory folder;
  ::setenv("FAKE_NCCL_BOARD", folder.path().c_str(), 1);
  const EmulatedGpus gpus(2);
  RankProcesses processes;
  processes.run("nccl", 2, [&](World& world, int rank) {
    return train_rank(world, rank, killed_at, processes);
  });
  ::unsetenv("FAKE_NCCL_BOARD");
  CAPTURE(killed_at);
  REQUIRE(processes.has_struck());
  CHECK(processes.has_ended(0));
  CHECK_THAT(processes.text(0), Catch::Contains("rank 1: "));
  CHECK(processes.seconds_after_strike(0) < 5);
}

}  // namespace gxp
