// Training with comm.gather_codec: a step computes with parameters that are rounded alike on all
// ranks, and nothing that lasts is rounded.
#include <algorithm>
#include <cmath>

#include "lib/ckpt/native/checkpoint.h"
#include "lib/collective/compress/codec.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"
#include "tests/train/codec/on_hosts.h"

namespace gxp {
namespace {

// Each way in which a step gathers shards.
const std::vector<Settings> kGathers = {
    {"parallel.strategy=zero3"},
    {"parallel.strategy=zero3", "train.precision=bf16"},
    {"parallel.strategy=zero3", "train.precision=fp16"},
    {"parallel.strategy=zero3", "offload.optimizer=memory", "offload.parameters=memory"},
    {"parallel.strategy=zero3", "lora.rank=4"},
    {"parallel.strategy=shard_grad_op", "parallel.prefetch_wraps=3"},
    {"parallel.strategy=full_shard", "parallel.hold_parameters=true", "comm.codec=int8"}};
// Weights that do not change.
const Settings kStill = {"optim.lr=1e-300", "lr_schedule.min_lr=0", "optim.weight_decay=0"};

Settings gathers_in(std::string_view codec) { return {"comm.gather_codec=" + std::string(codec)}; }

double distance_of_losses(const Trained& found, const Trained& expected) {
  REQUIRE(found.steps.size() == expected.steps.size());
  double most = 0;
  for (size_t i = 0; i < found.steps.size(); ++i)
    most = std::max(most, std::abs(found.steps[i].loss - expected.steps[i].loss));
  return most;
}

TEST_CASE(
    "parameters gathered in a codec give losses near exact ones, the same bits on all ranks "
    "and in every run",
    "[train][table]") {
  const RunHosts hosts = GENERATE(RunHosts{2, 1}, RunHosts{2, 2}, RunHosts{3, 2});
  const Settings gathers = GENERATE(from_range(kGathers));
  CAPTURE(hosts.count, hosts.ranks_of_host, gathers);
  const auto exact = train_on_hosts(config_on(hosts, gathers), hosts);
  for (const std::string codec : {"int8", "int4"}) {
    CAPTURE(codec);
    const RunConfig config = config_on(hosts, gathers, gathers_in(codec));
    const auto ranks = train_on_hosts(config, hosts);
    for (const Trained& rank : ranks) check_same(rank, ranks[0]);
    check_same(train_on_hosts(config, hosts)[0], ranks[0]);
    const double distance = distance_of_losses(ranks[0], exact[0]);
    CHECK(distance > 0);
    CHECK(distance < (codec == "int8" ? 0.02 : 0.3));
  }
}

// Of a checkpoint of one step.
std::vector<Values> saved_weights(const RunHosts& hosts, const Settings& sets) {
  const TemporaryDirectory dir;
  (void)part_of(config_on(hosts, sets, {"checkpoint.dir=" + (dir / "run")}), hosts, 1);
  const Checkpoint checkpoint = Checkpoint::open(dir / "run");
  std::vector<Values> weights;
  for (const LogicalTensor& tensor : checkpoint.manifest().tensors) {
    if (tensor.info.role != Role::kWeight) continue;
    weights.emplace_back(tensor.info.count());
    checkpoint.read(tensor, 0, memory_of(weights.back()));
  }
  return weights;
}

TEST_CASE("a gather codec rounds no weight that is kept", "[train]") {
  const Settings gathers = GENERATE(from_range(kGathers));
  CAPTURE(gathers);
  const auto saved = [&](std::string_view codec) {
    return saved_weights({2, 2}, gathers + kStill + gathers_in(codec));
  };
  const std::vector<Values> weights = saved("none");
  REQUIRE(!weights.empty());
  CHECK(same_bits(saved("int4"), weights));
}

TEST_CASE("validation gathers parameters as they are", "[train]") {
  const auto loss = [&](std::string_view codec) {
    const RunConfig config = config_on(
        {2, 2}, kGathers[0],
        gathers_in(codec) + Settings{"data.valid=" + golden_path("gpt2-accum", "tokens.i32"),
                                     "train.valid_batches=1"});
    return run_on_hosts({2, 2}, [&](Communicator& communicator) {
      Backend backend = make_backend(config.train, 4);
      Trainer trainer(config, communicator, backend);
      trainer.initialise_weights();
      return trainer.validate();
    })[0];
  };
  CHECK(loss("int4") == loss("none"));
}

TEST_CASE("a run is continued with another gather codec", "[train]") {
  const RunHosts hosts{2, 2};
  const TemporaryDirectory dir;
  const auto until = [&](int step, std::string_view codec) {
    return part_of(config_on(hosts, kGathers[0],
                             gathers_in(codec) + Settings{"checkpoint.dir=" + (dir / "run")}),
                   hosts, step);
  };
  const auto three = train_on_hosts(config_on(hosts, kGathers[0], gathers_in("int8")), hosts);
  (void)until(1, "int8");
  const Trained same = until(3, "int8");
  CHECK(same_bits(same.weights, three[0].weights));
  CHECK_NOTHROW(until(4, "none"));
  CHECK_NOTHROW(until(5, "int4"));
}

TEST_CASE("where no shard group spans hosts a gather codec changes no bit", "[train]") {
  const auto [hosts, sets] = GENERATE(table<RunHosts, Settings>(
      {{{1, 2}, {"parallel.strategy=zero3"}},
       {{1, 1}, {"parallel.strategy=zero3"}},
       {{2, 2}, {"parallel.strategy=hybrid_shard", "parallel.shard_size=2"}},
       {{2, 2}, {"parallel.strategy=zero3_hpz", "parallel.shard_size=2"}}}));
  const auto exact = train_on_hosts(config_on(hosts, sets), hosts);
  check_same(train_on_hosts(config_on(hosts, sets, gathers_in("int4")), hosts)[0], exact[0]);
}

// ---- What is refused

TEST_CASE("settings with which a gather codec has no meaning are refused by name", "[train]") {
  const auto [set, problem] = GENERATE(table<std::string, std::string>(
      {{"parallel.strategy=ddp", "must be none with parallel.strategy ddp, is int8: its steps do "},
       {"parallel.strategy=zero1", "must be none with parallel.strategy zero1, is int8: its steps"},
       {"parallel.strategy=zero2",
        "must be none with parallel.strategy zero2, is int8: its steps do not gather sharded "
        "parameters, and persistent ones are not rounded; use zero3"},
       {"train.deterministic=any-world-size",
        "must be none with train.deterministic any-world-size, is int8: what a codec rounds "
        "depends on the number of ranks and hosts"},
       {"comm.engine=nccl",
        "must be none with comm.engine nccl, is int8: NCCL sends values as they are"}}));
  CHECK(contains(error_of([&, set = set] {
                   (void)golden_config("gpt2-accum", 1,
                                       {"parallel.strategy=zero3", "comm.gather_codec=int8", set});
                 }).message,
                 "comm.gather_codec: " + problem));
}

TEST_CASE("shard groups that span some of the hosts are refused with a gather codec", "[train]") {
  const Settings sets = {"parallel.strategy=hybrid_shard", "parallel.shard_size=4"};
  CHECK(contains(error_of([&] {
                   (void)train_on_hosts(config_on({4, 2}, sets, gathers_in("int8")), {4, 2});
                 }).message,
                 "comm.gather_codec int8: shard groups of 4 ranks span hosts of 2; set "
                 "parallel.shard_size to 0 or a divisor of 2, or comm.gather_codec to none"));
}

}  // namespace
}  // namespace gxp
