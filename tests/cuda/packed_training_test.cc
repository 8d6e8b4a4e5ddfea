// Training on packed rows, whose documents are kept apart, on a GPU or an emulated one.
#include "lib/replay/memory.h"
#include "lib/train/step/cuda_backend.h"
#include "tests/catch.h"
#include "tests/replay/runs.h"
#include "tests/train/packed_documents.h"

namespace gxp {
namespace {

struct PackedGpuRun {
  std::string folder;
  Settings sets;
  PackedDocuments documents{golden_config(folder, 1).model.vocab_size};

  [[nodiscard]] RunConfig config(const Settings& of) const {
    return golden_config(folder, 1, of + sets + Settings{"train.gemm_cache=off"});
  }
  // On the packed rows.
  [[nodiscard]] Trained train_packed(const Settings& more) const {
    return train_on(config(documents.settings() + more), documents.data());
  }
  // On each document in a row of its own.
  [[nodiscard]] Trained train_apart() const {
    const RunConfig run = config(documents.settings_apart());
    return train_on(run, open_data(run));
  }

 private:
  static Trained train_on(const RunConfig& run, RunData data) {
    return run_ranks(1, [&](Communicator& communicator) {
      return train(run, communicator, make_cuda_backend(0, run.train, 1), std::move(data));
    })[0];
  }
};

// Heads that tensor cores take.
const Settings kWideHeads = {"model.init=normal", "model.hidden=128", "model.heads=2"};

}  // namespace

TEST_CASE("packed rows train on a GPU as their documents do in rows of their own") {
  const auto [folder, sets, tolerance] = GENERATE(table<std::string, Settings, double>(
      {{"gpt2-accum", {}, 2e-6},
       {"llama-tiny", {"train.recompute=full"}, 2e-6},
       {"gpt2-accum", kWideHeads + Settings{"train.precision=bf16"}, 2e-2}}));
  CAPTURE(folder, sets);
  const PackedGpuRun run{folder, sets + Settings{"train.steps=1", "train.attention=own"}};
  const StepResult packed = run.train_packed({}).steps[0], apart = run.train_apart().steps[0];
  CHECK(packed.targets == apart.targets);
  CHECK(packed.loss == Approx(apart.loss).epsilon(tolerance));
  CHECK(packed.grad_norm == Approx(apart.grad_norm).epsilon(tolerance));
}

TEST_CASE("packed rows train to the same bits where a GPU's kernels are recorded as graphs") {
  const PackedGpuRun run{"gpt2-accum", {"train.steps=4", "train.attention=own"}};
  check_same(run.train_packed({"train.cuda_graphs=on"}), run.train_packed({}));
}

TEST_CASE("what packed rows take of a GPU's memory is what their plan says") {
  const std::string folder = GENERATE("gpt2-accum", "llama-tiny");
  const PackedGpuRun run{folder, {"train.precision=bf16", "train.device=cuda"}};
  RunConfig config = run.config(run.documents.settings());
  const uint64_t found = run_ranks(1, [&](Communicator& communicator) {
    Backend backend = make_cuda_backend(0, config.train, 1);
    Trainer trainer(config, communicator, backend, run.documents.data());
    trainer.initialise_weights();
    for (int step = 0; step < 2; ++step) trainer.step(false);
    return backend.device->tracker().peak().total();
  })[0];
  config.data.documents = RowDocuments::kApart;
  const RunPlan plan = plan_run(config, 1);
  DeviceTerms terms = terms_of_device(config, plan);
  terms.start_bytes = 0;  // nothing is measured here
  const uint64_t planned = total_of(memory_of_run(plan, network_of("inproc", 1), 0, terms).peak);
  CHECK(found >= planned);
  CHECK(found - planned < 64 * 1024);
}

}  // namespace gxp
