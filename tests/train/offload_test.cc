// Offloaded state: the same bits, whatever lies where.
#include <sys/statvfs.h>

#include "lib/program/run_plan.h"
#include "tests/catch.h"
#include "tests/support/sim_device.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

// Where something is offloaded to, with an odd tile.
Settings offloaded_to(const std::string& where, const TemporaryDirectory& directory) {
  Settings sets = {"offload.optimizer=" + where, "offload.step_tile=3001"};
  if (where == "file") sets.push_back("offload.path=" + directory.path());
  return sets;
}

std::vector<Trained> train_few(int world_size, const Settings& sets) {
  return train_on_ranks(golden_config("gpt2-accum", 2, Settings{"train.steps=4"} + sets),
                        world_size);
}

TEST_CASE("offloaded optimizer state gives the same bits", "[train]") {
  const TemporaryDirectory directory;
  const std::string where = GENERATE("memory", "file");
  const std::string strategy = GENERATE("ddp", "zero1", "zero3");
  const std::string precision = GENERATE("fp32", "bf16", "fp16");
  const int world_size = GENERATE(1, 2);
  CAPTURE(where, strategy, precision, world_size);
  const Settings plain = {"parallel.strategy=" + strategy, "train.precision=" + precision};
  check_same(train_few(world_size, plain + offloaded_to(where, directory))[0],
             train_few(world_size, plain)[0]);
}

TEST_CASE("a part of the state that is offloaded gives the same bits", "[train][table]") {
  const TemporaryDirectory directory;
  const std::string ratio = GENERATE("0.01", "0.5", "0.99");
  const std::string tile = GENERATE("1", "2048", "20000", "100000000");
  const std::string precision = GENERATE("fp32", "bf16");
  CAPTURE(ratio, tile, precision);
  const Settings plain = {"parallel.strategy=zero2", "train.precision=" + precision};
  const Settings part = offloaded_to("memory", directory) +
                        Settings{"offload.ratio=" + ratio, "offload.step_tile=" + tile};
  check_same(train_few(2, plain + part)[0], train_few(2, plain)[0]);
}

TEST_CASE("every elementwise optimizer can be offloaded", "[train]") {
  const TemporaryDirectory directory;
  const std::string name = GENERATE("adamw", "adam", "sgd", "lion");
  Settings plain = {"optim.name=" + name, "parallel.strategy=zero1"};
  if (name == "adamw") plain.push_back("optim.state_dtype=bf16");
  if (name == "sgd") plain.push_back("optim.momentum=0.9");
  check_same(train_few(2, plain + offloaded_to("memory", directory))[0], train_few(2, plain)[0]);
}

TEST_CASE("both ways of file input and output give the same bits", "[train]") {
  const TemporaryDirectory directory;
  const std::string io = GENERATE("auto", "pread");
  const Settings file = offloaded_to("file", directory) + Settings{"offload.io=" + io};
  check_same(train_few(2, file)[0], train_few(2, {})[0]);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("offloaded parameters give the same bits", "[train]") {
  const TemporaryDirectory directory;
  const std::string where = GENERATE("memory", "file");
  const std::string precision = GENERATE("fp32", "bf16");
  const int world_size = GENERATE(1, 2);
  CAPTURE(where, precision, world_size);
  const Settings plain = {"parallel.strategy=zero3", "train.precision=" + precision};
  const Settings both = offloaded_to(where, directory) + Settings{"offload.parameters=" + where};
  check_same(train_few(world_size, plain + both)[0], train_few(world_size, plain)[0]);
}

TEST_CASE("a run goes on with the same bits where its state lies elsewhere", "[train]") {
  const TemporaryDirectory directory;
  const std::string precision = GENERATE("fp32", "bf16");
  const Settings plain = {"checkpoint.dir=" + directory.path() + "/checkpoints",
                          "parallel.strategy=zero3", "train.precision=" + precision};
  const auto config = [&](const Settings& sets) {
    return golden_config("gpt2-accum", 2, plain + sets);
  };
  const std::vector<Trained> whole = train_on_ranks(config({}), 2);
  const TemporaryDirectory files;
  const std::array<Settings, 4> places = {
      offloaded_to("file", files), Settings{},
      offloaded_to("memory", files) + Settings{"offload.parameters=memory"},
      offloaded_to("memory", files) + Settings{"offload.ratio=0.5"}};
  std::vector<Trained> parts;
  for (size_t i = 0; i < places.size(); ++i) {
    const int until = int(i + 1) * 3;
    parts = run_ranks(2, [&](Communicator& c) { return train_part(config(places[i]), c, until); });
  }
  CHECK(same_bits(whole[0].weights, parts[0].weights));
}

TEST_CASE("a step with offloaded state has no race and allocates nothing", "[train]") {
  const Settings sets = {"train.steps=3", "offload.optimizer=memory", "offload.step_tile=2048",
                         "parallel.strategy=zero3"};
  const std::string parameters = GENERATE("none", "memory");
  const std::string precision = GENERATE("fp32", "bf16");
  const RunConfig config = golden_config(
      "gpt2-accum", 2,
      sets + Settings{"offload.parameters=" + parameters, "train.precision=" + precision});
  const std::vector<Trained> plain = train_on_ranks(config, 2);
  const uint64_t seed = GENERATE(range(1, 5));
  const auto losses = run_ranks(2, [&](Communicator& communicator) {
    Backend backend = make_host_backend(std::make_unique<SimDevice>(seed), config.train, 1);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    const uint64_t before = backend.device->tracker().allocation_count();
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) losses.push_back(trainer.step(false).loss);
    losses.push_back(double(backend.device->tracker().allocation_count() - before));
    return losses;
  });
  for (size_t step = 0; step < 3; ++step) CHECK(losses[0][step] == plain[0].steps[step].loss);
  CHECK(losses[0][3] == 0);
}

TEST_CASE("taking any single event out of a step with offloaded state is found", "[train]") {
  const DType compute = GENERATE(DType::kF32, DType::kBF16);
  const Architecture architecture = make_architecture(golden_config("gpt2-tiny", 2).model, compute);
  StepShape shape{.rows = 2, .positions = 32, .world_size = 2};
  shape.offload = {.optimizer = Storage::kHost, .parameters = Storage::kHost, .tile = 8192};
  const StepProgram program =
      build_train_step(architecture, make_layout(architecture, 2), find_strategy("zero3"), shape)
          .program;
  const auto run_idle = [](const StepProgram& planted) {
    SimDevice device(1);
    const ProgramMemory memory(device, planted);
    Lanes lanes(device);
    ProgramRunner runner(lanes, planted, memory, [](const Op&) { return [] {}; });
    for (int step = 0; step < 2; ++step) runner.run(Deadline::after(std::chrono::seconds(60)));
  };
  CHECK_NOTHROW(run_idle(program));
  for (size_t id = 0; id < program.ops.size(); ++id) {
    for (size_t edge = 0; edge < program.ops[id].after.size(); ++edge) {
      StepProgram planted = program;
      planted.ops[id].after.erase(planted.ops[id].after.begin() + std::ptrdiff_t(edge));
      CAPTURE(describe(program.ops[id]));
      CHECK_THROWS_WITH(run_idle(planted), Catch::Contains("race"));
    }
  }
}

TEST_CASE("a rank offloads the bytes that the plan says", "[train]") {
  const TemporaryDirectory directory;
  const std::string parameters = GENERATE("none", "memory");
  const Settings sets = offloaded_to("file", directory) +
                        Settings{"offload.parameters=" + parameters, "train.precision=bf16"};
  const RunConfig config = golden_config("gpt2-tiny", 1, sets);
  const RunPlan plan = plan_run(config, 1);
  run_ranks(1, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 1);
    const Trainer trainer(config, communicator, backend);
    for (const Storage storage : {Storage::kHost, Storage::kFile})
      CHECK(trainer.offloaded().bytes(storage) ==
            plan.step.program.offloaded_bytes[size_t(storage)]);
    CHECK(trainer.offloaded().bytes(Storage::kFile) > 12 * plan.architecture.parameter_count());
    return 0;
  });
}

TEST_CASE("parameters that every rank holds whole are not offloaded", "[train]") {
  const RunConfig config =
      golden_config("gpt2-tiny", 2, {"offload.optimizer=memory", "offload.parameters=memory"});
  CHECK_NOTHROW(plan_run(config, 1));
  CHECK_THROWS_WITH(plan_run(config, 2), Catch::Contains("shard parameters"));
}

}  // namespace
}  // namespace gxp
