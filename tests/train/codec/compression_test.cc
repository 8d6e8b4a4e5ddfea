// Training with comm.codec: gradients between hosts are within the codec's bound of exact ones, and
// what it has not sent is added later, also by a run that resumes.
#include <algorithm>
#include <cmath>
#include <map>

#include "lib/ckpt/native/checkpoint.h"
#include "lib/collective/compress/codec.h"
#include "lib/config/rules.h"
#include "lib/train/training_state.h"
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/error_of.h"
#include "tests/train/codec/on_hosts.h"

namespace gxp {
namespace {

// Each way in which gradients are summed.
const std::vector<Settings> kSums = {{"parallel.strategy=ddp", "parallel.bucket_bytes=20000"},
                                     {"parallel.strategy=zero1"},
                                     {"parallel.strategy=zero2", "parallel.hold_gradients=false"},
                                     {"parallel.strategy=zero3"},
                                     {"parallel.strategy=zero2", "parallel.shard_size=1"},
                                     {"parallel.strategy=hybrid_shard", "parallel.shard_size=HOST"},
                                     {"parallel.strategy=hybrid_shard", "parallel.shard_size=HOST",
                                      "parallel.optimizer_over_replicas=true"}};
const std::vector<RunHosts> kHosts = {{2, 1}, {2, 2}, {3, 1}, {3, 2}, {2, 4}};

Settings codec(const std::string& name) { return {"comm.codec=" + name}; }

TEST_CASE("gradients in a codec are exact ones within its bound, alike on all ranks",
          "[train][table]") {
  const RunHosts hosts = GENERATE(from_range(kHosts));
  const Settings sum = GENERATE(from_range(kSums));
  CAPTURE(hosts.count, hosts.ranks_of_host, sum);
  const auto exact = train_on_hosts(config_on(hosts, sum), hosts);
  for (const Codec& each : codecs()) {
    CAPTURE(each.name);
    const auto ranks = train_on_hosts(config_on(hosts, sum, codec(std::string(each.name))), hosts);
    for (const Trained& rank : ranks) {
      check_same(rank, ranks[0]);
      CHECK(same_bits(rank.first_gradients, ranks[0].first_gradients));
    }
    // Of the largest value of a block, which exceeds the root mean square; once for each host's
    // part, and once for the sum.
    const double distance = relative_distance(ranks[0].first_gradients, exact[0].first_gradients);
    CHECK(distance > 0);
    CHECK(distance <= 4 * each.error * std::sqrt(hosts.count + 1.0));
  }
}

TEST_CASE("a run with a codec gives the same bits twice", "[train]") {
  const Settings sum = GENERATE(from_range(kSums));
  const RunConfig config = config_on({2, 2}, sum, codec("int4"));
  check_same(train_on_hosts(config, {2, 2})[0], train_on_hosts(config, {2, 2})[0]);
}

TEST_CASE("codecs take gradients that are reduced in half types", "[train]") {
  const Settings sum = GENERATE(from_range(kSums));
  const Settings half = {"parallel.reduce_dtype=bf16", "train.precision=bf16"};
  const auto exact = train_on_hosts(config_on({2, 2}, sum, half), {2, 2});
  const auto ranks = train_on_hosts(config_on({2, 2}, sum, half + codec("int8")), {2, 2});
  for (const Trained& rank : ranks) check_same(rank, ranks[0]);
  CHECK(relative_distance(ranks[0].first_gradients, exact[0].first_gradients) < 0.05);
}

// The sum of the gradients of 12 steps with weights that do not change.
std::vector<Values> sum_of_gradients(const RunConfig& config, const RunHosts& hosts) {
  return run_on_hosts(hosts, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, hosts.ranks());
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    std::vector<Values> sum;
    for (int step = 0; step < 12; ++step) {
      (void)trainer.step(false);
      const std::vector<Values> more = gradients_of(trainer, communicator);
      sum.resize(more.size());
      for (size_t t = 0; t < more.size(); ++t) {
        sum[t].resize(more[t].size());
        std::ranges::transform(sum[t], more[t], sum[t].begin(), std::plus());
      }
    }
    return sum;
  })[0];
}

TEST_CASE("with error feedback gradients add up over steps", "[train]") {
  const Settings sum = GENERATE(from_range(kSums));
  CAPTURE(sum);
  const Settings still = {"optim.lr=1e-30", "lr_schedule.min_lr=0", "train.steps=20",
                          "optim.clip=0", "optim.weight_decay=0"};
  const auto exact = sum_of_gradients(config_on({2, 2}, sum, still), {2, 2});
  const auto added = sum_of_gradients(config_on({2, 2}, sum, still + codec("int4")), {2, 2});
  const auto once = train_on_hosts(config_on({2, 2}, sum, codec("int4")), {2, 2});
  const auto one = train_on_hosts(config_on({2, 2}, sum), {2, 2});
  // The error of 12 steps is that of the last one: a twelfth of one step's, about.
  CHECK(relative_distance(added, exact) <
        0.3 * relative_distance(once[0].first_gradients, one[0].first_gradients));
}

// ---- Checkpoints

// All residuals of the checkpoint, summed over hosts, by tensor.
std::map<std::string, std::vector<double>> pending_in(const std::string& dir) {
  const Checkpoint checkpoint = Checkpoint::open(dir);
  std::map<std::string, std::vector<double>> pending;
  for (const LogicalTensor& tensor : checkpoint.manifest().tensors) {
    if (tensor.info.role != Role::kCodecResidual) continue;
    Values values(tensor.info.count());
    checkpoint.read(tensor, 0, memory_of(values));
    auto& sum = pending[tensor.info.name];
    sum.resize(values.size() / tensor.info.shape[0]);
    for (size_t i = 0; i < values.size(); ++i) sum[i % sum.size()] += double(values[i]);
  }
  return pending;
}

TEST_CASE("a resumed run with a codec is the uninterrupted one, to the bit", "[train]") {
  const RunHosts hosts = GENERATE(RunHosts{2, 2}, RunHosts{3, 1});
  const Settings sum = GENERATE(from_range(kSums));
  CAPTURE(hosts.count, sum);
  const TemporaryDirectory dir;
  const RunConfig whole = config_on(hosts, sum, codec("int4") + Settings{"train.steps=6"});
  const RunConfig saved = config_on(
      hosts, sum, codec("int4") + Settings{"train.steps=6", "checkpoint.dir=" + (dir / "run")});
  (void)part_of(saved, hosts, 3);
  const Trained resumed = part_of(saved, hosts, 6);
  CHECK(same_bits(resumed.weights, train_on_hosts(whole, hosts)[0].weights));
}

TEST_CASE("what is pending is kept on other hosts, by other sums", "[train]") {
  const Settings to = GENERATE(from_range(kSums));
  const RunHosts hosts = GENERATE(RunHosts{2, 2}, RunHosts{4, 1}, RunHosts{3, 1}, RunHosts{1, 2});
  CAPTURE(to, hosts.count);
  const TemporaryDirectory dir;
  const Settings saves = codec("int4") + Settings{"checkpoint.dir=" + (dir / "run")};
  (void)part_of(config_on({2, 2}, kSums[0], saves), {2, 2}, 2);
  const auto before = pending_in(dir / "run");
  (void)part_of(config_on(hosts, to, saves), hosts, 2);  // loads and saves
  const auto after = pending_in(dir / "run");
  REQUIRE(!before.empty());
  double most = 0;
  for (const auto& [name, sum] : before) {
    REQUIRE(after.at(name).size() == sum.size());
    for (size_t i = 0; i < sum.size(); ++i) {
      most = std::max(most, std::abs(sum[i]));
      CHECK(std::abs(after.at(name)[i] - sum[i]) <= 1e-6 * std::abs(sum[i]) + 1e-12);
    }
  }
  CHECK(most > 0);
}

TEST_CASE("one host adds what is pending to its first sum", "[train]") {
  const Settings sum = GENERATE(from_range(kSums));
  CAPTURE(sum);
  const TemporaryDirectory dir;
  const Settings saves = codec("int4") + Settings{"checkpoint.dir=" + (dir / "run")};
  (void)part_of(config_on({2, 2}, kSums[0], saves), {2, 2}, 1);
  const auto gradients = [&](bool resumes) {
    const RunConfig config = config_on({1, 4}, sum, saves);
    return run_on_hosts({1, 4}, [&](Communicator& communicator) {
      Backend backend = make_backend(config.train, 4);
      Trainer trainer(config, communicator, backend);
      REQUIRE(resume_state(trainer, communicator, config, {}));
      if (!resumes) trainer.state().clear_residuals();
      (void)trainer.step(false);
      return gradients_of(trainer, communicator);
    })[0];
  };
  const auto with = gradients(true), without = gradients(false);
  const auto pending = pending_in(dir / "run");
  CHECK(relative_distance(with, without) > 1e-3);
  REQUIRE(pending.size() == with.size());
}

TEST_CASE("a run that could not add what is pending does not resume", "[train]") {
  const TemporaryDirectory dir;
  const Settings saves = {"checkpoint.dir=" + (dir / "run")};
  (void)part_of(config_on({2, 1}, kSums[0], saves + codec("int8")), {2, 1}, 1);
  const auto error = [&](const Settings& sets, const RunHosts& hosts) {
    return error_of([&] { (void)part_of(config_on(hosts, kSums[0], saves + sets), hosts, 2); })
        .message;
  };
  const auto check = [&](const std::string& error, const std::string& who,
                         const std::string& remedy) {
    CHECK(error == "resume from " + (dir / "run") +
                       "/step-00000001: it holds parts of gradients that its run's comm.codec had "
                       "not sent yet, and " +
                       who + " cannot add them to the next step's; " + remedy +
                       ", or start without --resume, with model.init for its weights");
  };
  check(error({}, {2, 1}), "a run with comm.codec none", "set comm.codec as it was");
  check(error(codec("int8"), {1, 1}), "one rank", "use at least two ranks");
}

TEST_CASE("a run without a codec is continued with one", "[train]") {
  const TemporaryDirectory dir;
  const Settings saves = {"checkpoint.dir=" + (dir / "run")};
  (void)part_of(config_on({2, 1}, kSums[0], saves), {2, 1}, 1);
  CHECK(pending_in(dir / "run").empty());
  (void)part_of(config_on({2, 1}, kSums[0], saves + codec("int8")), {2, 1}, 2);
  CHECK(!pending_in(dir / "run").empty());
}

TEST_CASE("one host leaves nothing pending, so the run is continued without a codec", "[train]") {
  const TemporaryDirectory dir;
  const Settings saves = {"checkpoint.dir=" + (dir / "run")};
  (void)part_of(config_on({1, 2}, kSums[0], saves + codec("int8")), {1, 2}, 1);
  CHECK_NOTHROW(part_of(config_on({1, 2}, kSums[0], saves), {1, 2}, 2));
}

// ---- What is refused

TEST_CASE("settings that a codec would break are refused by name", "[train]") {
  const auto [set, problem] = GENERATE(table<std::string, std::string>(
      {{"train.deterministic=any-world-size",
        "must be none with train.deterministic any-world-size, is int8: what a codec rounds "
        "depends "
        "on the number of ranks and hosts"},
       {"train.precision=fp16",
        "must be none with train.precision fp16, is int8: error feedback would add gradients of "
        "different loss scales; use bf16"},
       {"train.bad_step=skip",
        "must be none with train.bad_step skip, is int8: error feedback would carry part of a bad "
        "step's gradients into the next one; use stop or roll-back"},
       {"comm.engine=nccl",
        "must be none with comm.engine nccl, is int8: NCCL sends values as they are"}}));
  CHECK(contains(error_of([&, set = set] {
                   (void)golden_config("gpt2-accum", 1, {"comm.codec=int8", set});
                 }).message,
                 "comm.codec: " + problem));
}

TEST_CASE("shard groups that span some of the hosts are refused with a codec", "[train]") {
  const Settings sets = {"parallel.strategy=hybrid_shard", "parallel.shard_size=4"};
  const std::string error = error_of([&] {
                              (void)train_on_hosts(config_on({4, 2}, sets, codec("int8")), {4, 2});
                            }).message;
  CHECK(contains(error,
                 "comm.codec int8: shard groups of 4 ranks span hosts of 2; set "
                 "parallel.shard_size to 0 or a divisor of 2, or comm.codec to none"));
}

}  // namespace
}  // namespace gxp
