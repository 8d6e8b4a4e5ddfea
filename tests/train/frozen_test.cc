// Frozen parameters: what is trained trains as it would, under every strategy, and the rest is
// neither moved nor paid for.
#include <algorithm>
#include <cmath>
#include <set>

#include "lib/arch/optimizers.h"
#include "lib/ckpt/native/checkpoint.h"
#include "lib/program/run_plan.h"
#include "lib/shard/layout.h"
#include "lib/train/background_save.h"
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* folder;
  const char* patterns;
};

// The lower part of the model, parts of all units, single tensors, the upper part, all but a few.
const std::vector<Case> kCases = {
    {"gpt2-tiny", R"(["wte.weight", "wpe.weight", "h.0.*"])"},
    {"gpt2-tiny", R"(["h.*.attn.*", "*.ln_1.*"])"},
    {"gpt2-tiny", R"(["transformer.wte.weight", "*.bias"])"},
    {"gpt2-tiny", R"(["h.1.*", "ln_f.*"])"},
    {"gpt2-tiny", R"(["w?e.*", "h.*"])"},
    {"llama-tiny", R"(["embed_tokens.*", "layers.0.*", "lm_head.*"])"},
    {"llama-tiny", R"(["*_proj.weight"])"},
    {"llama-tiny", R"(["model.norm.weight", "layers.1.mlp.[gu]*", "*layernorm*"])"}};

RunConfig config_of(const Case& run, int world_size, const Settings& more = {}) {
  return golden_config(run.folder, world_size,
                       Settings{std::string("train.frozen=") + run.patterns, "train.steps=3",
                                "train.micro_batch=1", "train.grad_accum=2"} +
                           more);
}

// By tensor, in the order of weights_of().
std::vector<bool> is_frozen(const RunConfig& config) {
  std::vector<bool> frozen;
  for (const UnitSpec& unit : run_architecture(config).units)
    for (const TensorSpec& tensor : unit.tensors) frozen.push_back(tensor.frozen);
  return frozen;
}

TEST_CASE("with frozen tensors every strategy has the bits of DDP", "[train][table]") {
  const Case run = GENERATE(from_range(kCases));
  const Settings how = GENERATE(values<Settings>(
      {{"parallel.strategy=zero1"},
       {"parallel.strategy=zero1", "train.precision=fp16"},
       {"parallel.strategy=zero3", "offload.optimizer=memory", "offload.ratio=0.5",
        "offload.step_tile=4096"},
       {"parallel.strategy=zero2", "train.grad_accum_dtype=bf16", "train.precision=bf16"},
       {"parallel.strategy=zero3"},
       {"parallel.strategy=zero3", "train.precision=bf16", "offload.optimizer=memory",
        "offload.parameters=memory", "offload.step_tile=4096"},
       {"parallel.strategy=zero3", "train.grad_accum=1"},
       {"parallel.strategy=shard_grad_op", "parallel.wrap=none"},
       {"parallel.strategy=hybrid_shard", "parallel.shard_size=1",
        "parallel.optimizer_over_replicas=true"},
       {"parallel.strategy=zero3", "parallel.wrap=size", "parallel.wrap_min_params=20000"},
       {"parallel.strategy=zero3", "train.recompute=full", "parallel.backward_prefetch=post"}}));
  CAPTURE(run.folder, run.patterns, how);
  Settings plain;
  for (const std::string& set : how) {
    if (set.find(".wrap") != std::string::npos || set.starts_with("train.")) plain.push_back(set);
  }
  const Trained ddp = train_on_ranks(config_of(run, 2, plain), 2)[0];
  for (const Trained& rank : train_on_ranks(config_of(run, 2, how), 2)) {
    check_same(rank, ddp);
  }
}

TEST_CASE("what is trained has the gradients of a run without frozen tensors; the rest stays",
          "[train][table]") {
  const Case run = GENERATE(from_range(kCases));
  const std::string optimizer(GENERATE(from_range(optimizers())).name);
  CAPTURE(run.folder, run.patterns, optimizer);
  const Settings sets = {"optim.name=" + optimizer, "parallel.strategy=zero2"};
  const RunConfig config = config_of(run, 2, sets);
  const Trained found = train_on_ranks(config, 2)[0];
  const Trained all = train_on_ranks(config_of({run.folder, "[]"}, 2, sets), 2)[0];
  const auto before = run_ranks(2, [&](Communicator& c) {
    Backend backend = make_backend(config.train, 2);
    Trainer trainer(config, c, backend);
    trainer.initialise_weights();
    return weights_of(trainer, c);
  })[0];
  const std::vector<bool> frozen = is_frozen(config);
  double squares = 0;
  for (size_t i = 0; i < frozen.size(); ++i) {
    CAPTURE(i);
    CHECK((found.weights[i] == before[i]) == frozen[i]);
    if (frozen[i]) continue;
    CHECK(found.first_gradients[i] == all.first_gradients[i]);
    for (const float g : found.first_gradients[i]) squares += double(g) * double(g);
  }
  CHECK(found.steps[0].loss == all.steps[0].loss);
  CHECK(found.steps[0].grad_norm == Approx(std::sqrt(squares)).epsilon(1e-12));
}

TEST_CASE("frozen tensors are not paid for", "[train]") {
  const Case run = GENERATE(from_range(kCases));
  const std::string strategy = GENERATE("ddp", "zero1", "zero3");
  CAPTURE(run.folder, run.patterns, strategy);
  const RunPlan plan =
      plan_run(config_of(run, 1, {"parallel.strategy=" + strategy, "train.precision=bf16"}), 2);
  const StepProgram& program = plan.step.program;
  size_t trained = 0, all = 0;  // with the padding of each tensor
  int lowest = -1;
  for (const UnitSpec& unit : plan.architecture.units) {
    if (!unit.is_frozen() && lowest < 0) lowest = int(&unit - plan.architecture.units.data());
    for (const TensorSpec& tensor : unit.tensors) {
      const size_t padded = (tensor.count() + 15) / 16 * 16;
      trained += tensor.frozen ? 0 : padded;
      all += padded;
    }
  }
  const size_t padding = 2 * 16 * plan.layout.wraps.size() + 2 * kFrozenAlignment;
  const auto held = [&](BufferId id) {
    const BufferSpec& buffer = program.buffers[size_t(id)];
    const bool whole = id == program.gradients    ? program.gradient_shards == 1
                       : id == program.parameters ? program.parameter_shards == 1
                                                  : program.optimizer_shards == 1;
    return buffer.bytes / size_of(buffer.dtype) * (whole ? 1 : 2);
  };
  const auto is_near = [&](size_t found, size_t count) {
    return found >= count && found <= count + padding;
  };
  CHECK(is_near(held(program.parameters), all));
  CHECK(is_near(held(program.master_weights), trained));
  CHECK(is_near(held(program.gradients), trained));
  for (const BufferId id : program.optimizer_states) CHECK(is_near(held(id), trained));
  std::set<int> backward, reduced;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::kBackward) backward.insert(op.unit);
    if (op.kind == OpKind::kReduceGradients && op.wrap >= 0) reduced.insert(op.wrap);
  }
  CHECK((backward.empty() || *backward.begin() >= lowest));
  for (const int wrap : reduced) CHECK(!plan.layout.wraps[size_t(wrap)].frozen);
}

TEST_CASE("a run with frozen tensors resumes under another strategy, to the same bits", "[train]") {
  const Case run = GENERATE(from_range(kCases));
  const std::string optimizer = GENERATE("adamw", "adafactor");
  CAPTURE(run.folder, run.patterns, optimizer);
  const TemporaryDirectory directory;
  const auto config = [&](const std::string& strategy) {
    return config_of(run, 2,
                     {"train.steps=4", "optim.name=" + optimizer,
                      "checkpoint.dir=" + directory.path(), "parallel.strategy=" + strategy});
  };
  const Trained whole = train_on_ranks(config("ddp"), 2)[0];
  run_ranks(2, [&](Communicator& c) { return train_part(config("zero3"), c, 2); });
  const Trained resumed =
      run_ranks(2, [&](Communicator& c) { return train_part(config("zero1"), c, 4); })[0];
  CHECK(same_bits(resumed.weights, whole.weights));
}

TEST_CASE("checkpoints share the files of what is frozen", "[train]") {
  const auto [run, strategy, in_background] = GENERATE(from_range(combinations(
      kCases, std::vector<std::string>{"ddp", "zero3"}, std::vector<bool>{false, true})));
  const bool async = in_background;
  CAPTURE(run.folder, run.patterns, strategy, async);
  const TemporaryDirectory directory;
  const RunConfig config =
      config_of(run, 2, {"checkpoint.dir=" + directory.path(), "parallel.strategy=" + strategy});
  run_ranks(2, [&](Communicator& c) {
    Backend backend = make_backend(config.train, 2);
    Trainer trainer(config, c, backend);
    trainer.initialise_weights();
    const KeyValues settings;
    BackgroundSave background(c, config, settings);
    for (int step = 0; step < 3; ++step) {
      trainer.step(false);
      async ? background.start(trainer) : save_state(trainer, c, config, settings);
    }
    background.finish();
    return 0;
  });
  for (const char* rank : {"00000", "00001"}) {
    const auto file = [&](const char* step, const char* kind) {
      return fmt::format("{}/{}/{}-{}-of-00002.bin", directory.path(), step, kind, rank);
    };
    CHECK_FALSE(fs::equivalent(file("step-00000002", "shard"), file("step-00000003", "shard")));
    const std::string frozen = file("step-00000003", "frozen");
    if (fs::file_size(frozen) == 0) continue;  // all are in the other rank's shard
    CHECK(fs::equivalent(file("step-00000002", "frozen"), frozen));
    CHECK(fs::hard_link_count(frozen) == 2);  // the first step's has gone
  }
  CHECK_NOTHROW(Checkpoint::open(directory.path()).verify());
}

TEST_CASE("a resumed run may freeze more, and not less", "[train]") {
  const TemporaryDirectory directory;
  const auto train_with = [&](const char* patterns, int until) {
    const RunConfig config =
        config_of({"gpt2-tiny", patterns}, 1, {"checkpoint.dir=" + directory.path()});
    run_ranks(1, [&](Communicator& c) { return train_part(config, c, until); });
  };
  train_with(R"(["h.0.*"])", 1);
  CHECK_NOTHROW(train_with(R"(["h.*"])", 2));
  CHECK_THROWS_WITH(
      train_with(R"(["wpe.weight"])", 3),
      Catch::Contains("the optimizer state of transformer.h.0.ln_1.weight (adam_m) is missing"));
}

TEST_CASE("patterns that freeze nothing or everything are refused", "[train]") {
  const auto plan = [](const char* patterns) {
    plan_run(config_of({"gpt2-tiny", patterns}, 1), 1);
  };
  CHECK_THROWS_WITH(plan(R"(["h.0.*", "h.77.*"])"), Catch::Contains("'h.77.*': matches none"));
  CHECK_THROWS_WITH(plan(R"(["*"])"), Catch::Contains("nothing to train"));
}

}  // namespace
}  // namespace gxp
