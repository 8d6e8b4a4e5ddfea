// What surrounds a GPU's kernels in training, held against the CPU to the bit: on an emulated GPU
// whose kernels are the CPU's, run as late as its streams allow.
#include <atomic>

#include "kernels/cuda/cudnn/cudnn_plans.h"
#include "lib/arch/optimizers.h"
#include "lib/train/model/generation.h"
#include "lib/train/step/cuda_backend.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/combinations.h"
#include "tests/cuda/emulation/cuda_runtime_api.h"
#include "tests/cuda/emulation/cudnn.h"
#include "tests/cuda/forwarded_folds.h"
#include "tests/cuda/nccl_ranks.h"
#include "tests/cuda/queued_cpu_ops.h"
#include "tests/temporary_directory.h"
#include "tests/train/codec/on_hosts.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

Backend queued_backend(const TrainConfig& config, int gpu = 0) {
  Backend backend = make_cuda_backend(gpu, config, 1);
  backend.ops = make_queued_cpu_ops((*backend.lanes)[Lane::kCompute]);
  backend.comm_ops = make_queued_cpu_ops((*backend.lanes)[Lane::kComm]);
  return backend;
}

struct FoldCounts {
  std::atomic<int> folds = 0;
};

// Counts what it passes on.
class CountedFolds final : public ForwardedFolds {
 public:
  CountedFolds(std::unique_ptr<DeviceFolds> folds, FoldCounts& counts)
      : ForwardedFolds(std::move(folds)), counts_(counts) {}
  void fold_all(Stream& stream, std::span<std::byte* const> targets,
                std::span<const std::byte* const> sources, size_t bytes, DType dtype, ReduceOp op,
                const FoldOptions& options) override {
    ++counts_.folds;
    ForwardedFolds::fold_all(stream, targets, sources, bytes, dtype, op, options);
  }

 private:
  FoldCounts& counts_;
};

// Over transport shm, where the GPUs' memories are reached.
std::vector<Trained> train_over_gpus(const RunConfig& config, int world_size, bool own_gpus,
                                     FoldCounts& counts) {
  const EmulatedGpus gpus(own_gpus ? world_size : 1);
  return run_ranks_of("shm", world_size, [&](Communicator& communicator) {
    Backend backend = queued_backend(config.train, own_gpus ? communicator.rank() : 0);
    backend.folds = std::make_unique<CountedFolds>(std::move(backend.folds), counts);
    return train(config, communicator, std::move(backend));
  });
}

// The collectives' reductions ran on the GPUs' memories. With a GPU for each rank, all calls are
// queued.
void check_device_calls_like_cpu(const RunConfig& config, int world_size, bool own_gpus) {
  const std::vector<Trained> expected = train_on_ranks(config, world_size);
  FoldCounts counts;
  const std::vector<Trained> found = train_over_gpus(config, world_size, own_gpus, counts);
  for (size_t rank = 0; rank < found.size(); ++rank) check_same(found[rank], expected[rank]);
  // Of ranks that share a GPU, one folds for all.
  CHECK(counts.folds >= (own_gpus ? world_size : 1) * int(found[0].steps.size()));
}

// The first step plain, the second recorded, the others from the recordings.
void check_like_cpu(RunConfig config, int world_size) {
  const std::vector<Trained> expected = train_on_ranks(config, world_size);
  config.train.cuda_graphs = "on";
  const std::vector<Trained> found = run_ranks(world_size, [&](Communicator& communicator) {
    return train(config, communicator, queued_backend(config.train));
  });
  for (size_t rank = 0; rank < found.size(); ++rank) check_same(found[rank], expected[rank]);
}

// Over engine nccl: no collective is waited for on the host.
void check_nccl_like_cpu(const RunConfig& config, int world_size) {
  const std::vector<Trained> expected = train_on_ranks(config, world_size);
  std::vector<Trained> found(static_cast<size_t>(world_size));
  const auto errors = run_over_nccl(world_size, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    found[size_t(rank)] = train(config, communicator, queued_backend(config.train, rank));
    return "";
  });
  for (size_t rank = 0; rank < found.size(); ++rank) {
    REQUIRE(errors[rank] == "");
    check_same(found[rank], expected[rank]);
  }
}

// A few steps of a golden run whose batch is 2 rows on each rank.
RunConfig few_steps(const Settings& sets, const std::string& folder = "gpt2-accum") {
  return golden_config(
      folder, 2,
      Settings{"train.steps=4", "model.init=normal", "parallel.bucket_bytes=8000"} + sets);
}

}  // namespace

TEST_CASE("a run over NCCL in stream order has the CPU's bits under every strategy") {
  const auto [strategy, precision] = GENERATE(from_range(combinations<std::string, std::string>(
      {"ddp", "zero1", "zero2", "zero3", "shard_grad_op"}, {"fp32", "bf16", "fp16"})));
  CAPTURE(strategy, precision);
  check_nccl_like_cpu(few_steps({"parallel.strategy=" + strategy, "train.precision=" + precision}),
                      2);
}

TEST_CASE("a queued run has the CPU's bits under every strategy") {
  const auto [strategy, precision, world_size] =
      GENERATE(from_range(combinations<std::string, std::string, int>(
          {"ddp", "zero1", "zero2", "zero3", "shard_grad_op"}, {"fp32", "bf16", "fp16"}, {1, 2})));
  CAPTURE(strategy, precision, world_size);
  check_like_cpu(few_steps({"parallel.strategy=" + strategy, "train.precision=" + precision}),
                 world_size);
}

TEST_CASE("a queued run has the CPU's bits with every way to keep a step small") {
  const Settings sets = GENERATE(
      values<Settings>({{"train.recompute=full"},
                        {"train.grad_accum_dtype=bf16", "parallel.strategy=zero2"},
                        {"train.grad_accum_dtype=bf16", "parallel.strategy=ddp"},
                        {"train.precision=bf16", "train.rounding=stochastic"},
                        {"train.deterministic=any-world-size", "train.grad_accum=4"},
                        {"train.frozen=[\"h.0.*\"]", "parallel.strategy=zero1"},
                        {"model.layers=1", "parallel.strategy=zero3", "train.grad_accum=1"}}));
  CAPTURE(sets);
  check_like_cpu(few_steps(sets), 2);
}

TEST_CASE("a run whose GPUs reach each other's memory has the CPU's bits under every strategy") {
  const std::string strategy = GENERATE("ddp", "zero1", "zero2", "zero3", "shard_grad_op",
                                        "hybrid_shard", "hybrid_shard_zero2", "zero3_hpz");
  const auto [world_size, own_gpus] =
      GENERATE(table<int, bool>({{2, false}, {2, true}, {4, true}}));
  const std::string precision = world_size == 2 ? "fp32" : "bf16";
  const bool in_groups = strategy.starts_with("hybrid") || strategy == "zero3_hpz";
  CAPTURE(strategy, world_size, own_gpus);
  Settings sets = {"parallel.strategy=" + strategy, "train.precision=" + precision};
  if (world_size == 4) sets.emplace_back("train.micro_batch=1");
  if (in_groups) sets.push_back(fmt::format("parallel.shard_size={}", world_size / 2));
  check_device_calls_like_cpu(few_steps(sets), world_size, own_gpus);
}

TEST_CASE("a run with codecs between hosts has the CPU's bits") {
  const Settings sets = GENERATE(values<Settings>(
      {{"parallel.strategy=ddp", "comm.codec=int8"},
       {"parallel.strategy=zero2", "comm.codec=int4", "train.precision=bf16"},
       {"parallel.strategy=zero3", "comm.codec=int8", "comm.gather_codec=int8"},
       {"parallel.strategy=hybrid_shard", "parallel.shard_size=2", "comm.codec=int4"}}));
  CAPTURE(sets);
  const RunHosts hosts{2, 2};
  RunConfig config = config_on(hosts, sets, {"parallel.bucket_bytes=8000", "train.steps=4"});
  const std::vector<Trained> expected = train_on_hosts(config, hosts);
  config.train.cuda_graphs = "on";
  const std::vector<Trained> found = run_on_hosts(hosts, [&](Communicator& communicator) {
    return train(config, communicator, queued_backend(config.train));
  });
  for (size_t rank = 0; rank < found.size(); ++rank) check_same(found[rank], expected[rank]);
  // What is pending is saved, and read again.
  const TemporaryDirectory directory;
  config.checkpoint.dir = directory / "run";
  for (const int until : {2, 4}) {
    const std::vector<Trained> parts = run_on_hosts(hosts, [&](Communicator& communicator) {
      return train_part(config, communicator, until, queued_backend(config.train));
    });
    if (until == 4) CHECK(same_bits(parts[0].weights, expected[0].weights));
  }
}

TEST_CASE("ranks that compute on devices of two kinds are told so") {
  const RunConfig config = few_steps({"train.device=cpu"});
  const auto start = [&](Communicator& communicator) {
    Backend backend = communicator.rank() == 1 ? make_backend(config.train, 2)
                                               : make_cuda_backend(0, config.train, 2);
    Trainer(config, communicator, backend);
    return 0;
  };
  CHECK_THROWS_WITH(run_ranks(2, start),
                    Catch::Contains("rank 0 computes on a GPU, rank 1 on the CPU"));
}

TEST_CASE("a GPU without 8-bit products refuses to train with them") {
  const RunConfig config = few_steps({"train.precision=bf16", "train.matmul=fp8"});
  set_emulated_capability(8, 6);
  CHECK_THROWS_WITH(
      make_cuda_backend(0, config.train, 1),
      Catch::Contains("capability 8.9") && Catch::Contains("train.matmul = \"precision\""));
  set_emulated_capability(8, 9);
  CHECK_NOTHROW(make_cuda_backend(0, config.train, 1));
  set_emulated_capability(9, 0);
}

TEST_CASE("train.deterministic off lets cuDNN sum in any order") {
  const auto first_step = [](const std::string& deterministic) {
    const RunConfig config =
        few_steps({"train.precision=bf16", "train.attention=cudnn", "train.gemm_cache=off",
                   "train.deterministic=" + deterministic});
    return run_ranks(1, [&](Communicator& communicator) {
      Backend backend = make_cuda_backend(0, config.train, 1);
      Trainer trainer(config, communicator, backend);
      trainer.initialise_weights();
      return trainer.step(false).loss;
    });
  };
  const std::vector<double> in_order = first_step("world-size");
  emulation::cudnn_behaviour().is_ordered = false;
  forget_cudnn_plans();
  CHECK(first_step("off") == in_order);  // the loss is of the forward pass
  CHECK_THROWS_WITH(first_step("world-size"),
                    Catch::Contains("the order of its sums is not fixed"));
  emulation::cudnn_behaviour() = {};
  forget_cudnn_plans();
}

TEST_CASE("train.matmul tf32 lets a GPU round the operands of its products") {
  const auto product = [](const std::string& matmul) {
    const RunConfig config = few_steps({"train.gemm_cache=off", "train.matmul=" + matmul});
    const Backend backend = make_cuda_backend(0, config.train, 1);
    const Buffer memory = backend.device->allocate(2 * 256, MemoryKind::kWorkspace);
    const auto matrix = [&](size_t i) {
      return Tensor(memory.memory().slice(i * 256, 256), DType::kF32, {8, 8});
    };
    backend.ops->fill(matrix(0), 1 + 0x1p-12f);
    backend.ops->matmul(matrix(1), matrix(0), matrix(0), {});
    (*backend.lanes)[Lane::kCompute].finish(Deadline::after(std::chrono::seconds(30)));
    std::vector<float> found(64);
    backend.device->copy(memory_of(found), matrix(1).memory);
    return found.front();
  };
  CHECK(product("precision") > 8);
  CHECK(product("tf32") == 8);
}

TEST_CASE("a queued hybrid run has the CPU's bits") {
  const std::string strategy = GENERATE("hybrid_shard", "hybrid_shard_zero2");
  CAPTURE(strategy);
  check_like_cpu(
      few_steps({"parallel.strategy=" + strategy, "parallel.shard_size=2", "train.micro_batch=1"}),
      4);
}

TEST_CASE("a queued run of a Llama has the CPU's bits") {
  check_like_cpu(few_steps({"parallel.strategy=zero3"}, "llama-tiny"), 2);
}

TEST_CASE("a queued run has the CPU's bits with every optimizer") {
  std::vector<std::string> all = {"optim.state_dtype=bf16", "optim.state_dtype=int8"};
  for (const OptimizerRow& row : optimizers()) all.push_back("optim.name=" + std::string(row.name));
  const std::string optimizer = GENERATE_COPY(from_range(all));
  const std::string strategy = GENERATE("ddp", "zero3");
  CAPTURE(optimizer, strategy);
  check_like_cpu(few_steps({optimizer, "parallel.strategy=" + strategy}), 2);
}

TEST_CASE("a queued run has the CPU's bits with state outside the GPU") {
  const TemporaryDirectory directory;
  const auto [where, precision, more] =
      GENERATE(from_range(combinations<std::string, std::string, Settings>(
          {"memory", "file"}, {"fp32", "bf16"},
          {{}, {"offload.ratio=0.5", "parallel.strategy=zero2"}, {"parallel.strategy=zero3"}})));
  CAPTURE(where, precision, more);
  Settings sets = {"offload.optimizer=" + where, "offload.step_tile=3001",
                   "train.precision=" + precision};
  if (where == "file") sets.push_back("offload.path=" + directory.path());
  if (more == Settings{"parallel.strategy=zero3"}) sets.push_back("offload.parameters=" + where);
  check_like_cpu(few_steps(sets + more), 2);
}

TEST_CASE("a queued run goes on, with the CPU's bits, from where the CPU has saved it, and back") {
  const TemporaryDirectory directory;
  const std::string precision = GENERATE("fp32", "bf16");
  const Settings offload = GENERATE(values<Settings>({{}, {"offload.optimizer=memory"}}));
  CAPTURE(precision, offload);
  const Settings sets = {"parallel.strategy=zero1", "train.precision=" + precision};
  const auto expected = train_on_ranks(few_steps(sets + Settings{"train.steps=6"}), 2);
  const RunConfig config = few_steps(
      sets + offload + Settings{"train.steps=6", "checkpoint.dir=" + directory.path() + "/saved"});
  std::vector<Trained> found;
  for (const int until : {2, 4, 6}) {
    found = run_ranks(2, [&](Communicator& communicator) {
      if (until == 4) return train_part(config, communicator, until);
      return train_part(config, communicator, until, queued_backend(config.train));
    });
  }
  CHECK(same_bits(found[0].weights, expected[0].weights));
}

TEST_CASE("queued validation and generation have the CPU's bits") {
  const std::string strategy = GENERATE("ddp", "zero1", "zero3");
  const Settings more = GENERATE(values<Settings>(
      {{}, {"train.precision=bf16"}, {"train.precision=bf16", "offload.optimizer=memory"}}));
  CAPTURE(strategy, more);
  const RunConfig config =
      few_steps(Settings{"parallel.strategy=" + strategy,
                         "data.valid=" + golden_path("gpt2-accum", "tokens.i32")} +
                more);
  const auto look = [&](Communicator& communicator, Backend backend) {
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    const double before = trainer.validate();
    trainer.step(false);
    const double after = trainer.validate();
    return std::tuple(before, after, generate(trainer.model(), {.prompt = {1, 2, 3}, .count = 5}));
  };
  const auto expected =
      run_ranks(2, [&](Communicator& c) { return look(c, make_backend(config.train, 2)); });
  const auto found =
      run_ranks(2, [&](Communicator& c) { return look(c, queued_backend(config.train)); });
  CHECK(found == expected);
}

}  // namespace gxp
