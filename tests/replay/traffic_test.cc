// The bytes that are predicted are those that the transport counts, to the byte.
#include "lib/replay/traffic.h"
#include "lib/arch/optimizers.h"

#include "lib/program/run_plan.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/combinations.h"
#include "tests/replay/runs.h"

namespace gxp {
namespace {

// What a rank sends in a step: all, and what of it to other hosts.
using Sent = std::pair<uint64_t, uint64_t>;

// What each rank sends in the second step.
std::vector<Sent> sent_in_a_step(const RunConfig& config, const std::string& transport,
                                 int world_size) {
  const auto train = [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, world_size);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    trainer.step(false);
    const StepResult step = trainer.step(false);
    communicator.barrier();  // nobody hangs up on a rank that still works
    return Sent(step.wire_bytes, step.wire_bytes_between_hosts);
  };
  return run_ranks_of(transport, world_size, train);
}

std::vector<Sent> predicted(const RunConfig& config, const Network& network) {
  const RunPlan plan = plan_run(config, network.world_size);
  const std::vector<OpTraffic> traffic = traffic_of(plan.step.program, network);
  std::vector<Sent> sent;
  for (int rank = 0; rank < network.world_size; ++rank)
    sent.emplace_back(sent_by(traffic, rank), sent_between_hosts_by(traffic, rank));
  return sent;
}

TEST_CASE("every rank of every strategy sends the bytes that are predicted", "[replay]") {
  const auto [strategy, world_size, accumulates, precision] = GENERATE(from_range(
      combinations(all_strategies(), std::vector<int>{2, 3, 4, 5, 6, 7, 8, 9},
                   std::vector<bool>{false, true}, std::vector<std::string>{"fp32", "bf16"})));
  CAPTURE(strategy, world_size, accumulates, precision);
  std::vector<std::string> sets = with_groups(strategy, world_size);
  sets.insert(sets.end(), {"parallel.bucket_bytes=20000", "train.precision=" + precision});
  if (accumulates) sets.insert(sets.end(), {"train.grad_accum=2", "parallel.hold_gradients=false"});
  const RunConfig config = small_run(sets);
  CHECK(sent_in_a_step(config, "inproc", world_size) ==
        predicted(config, network_of("inproc", world_size)));
}

TEST_CASE("bytes are predicted over shared memory and TCP, and between hosts", "[replay]") {
  const auto [transport, world_size, strategy] = GENERATE(from_range(
      combinations(std::vector<std::string>{"shm", "tcp", "shm+tcp"}, std::vector<int>{3, 4, 5, 6},
                   std::vector<std::string>{"ddp", "zero1", "zero3", "hybrid_shard"})));
  CAPTURE(transport, world_size, strategy);
  std::vector<std::string> sets = {"parallel.strategy=" + strategy, "train.grad_accum=3"};
  if (strategy == "hybrid_shard") sets.emplace_back("parallel.shard_size=GROUP");
  const RunConfig config = small_run(with_groups(sets, world_size));
  Network network = network_of(transport, world_size);
  for (int rank = 0; rank < world_size && transport == "shm+tcp"; ++rank)
    network.hosts.push_back(2 * rank < world_size ? 0 : 1);
  CHECK(sent_in_a_step(config, transport, world_size) == predicted(config, network));
}

TEST_CASE("what every strategy sends between two hosts is predicted", "[replay]") {
  const auto strategy = GENERATE(from_range(all_strategies()));
  const int world_size = GENERATE(3, 4, 6);
  CAPTURE(strategy, world_size);
  const RunConfig config = small_run(with_groups(strategy, world_size));
  Network network = network_of("shm+tcp", world_size);
  for (int rank = 0; rank < world_size; ++rank)
    network.hosts.push_back(2 * rank < world_size ? 0 : 1);
  const std::vector<Sent> sent = sent_in_a_step(config, "shm+tcp", world_size);
  CHECK(sent == predicted(config, network));
  uint64_t between = 0;
  for (const Sent& rank : sent) between += rank.second;
  CHECK(between > 0);
}

TEST_CASE("groups with replicas send the bytes that are predicted", "[replay]") {
  const auto [transport, strategy, over] = GENERATE(from_range(
      combinations(std::vector<std::string>{"inproc", "tcp", "shm+tcp"},
                   std::vector<std::string>{"zero2", "hybrid_shard", "hybrid_shard_zero2"},
                   std::vector<std::string>{"false", "true"})));
  CAPTURE(transport, strategy, over);
  const RunConfig config = small_run({"parallel.strategy=" + strategy, "parallel.shard_size=2",
                                      "parallel.optimizer_over_replicas=" + over});
  Network network = network_of(transport, 6);
  if (transport == "shm+tcp") network.hosts = {0, 0, 0, 1, 1, 1};
  CHECK(sent_in_a_step(config, transport, 6) == predicted(config, network));
}

TEST_CASE("what is kept is not sent again, as predicted", "[replay]") {
  const std::string keeping = GENERATE(from_range(kKeepings));
  const std::string strategy = GENERATE("zero3", "shard_grad_op", "hybrid_shard");
  CAPTURE(keeping, strategy);
  std::vector<std::string> sets = {"train.grad_accum=3", "parallel.strategy=" + strategy};
  if (find_strategy(strategy).hybrid) sets.emplace_back("parallel.shard_size=2");
  const auto sent = [&] {
    const RunConfig config = small_run(sets);
    const auto counted = sent_in_a_step(config, "inproc", 4);
    CHECK(counted == predicted(config, network_of("inproc", 4)));
    return counted[0];
  };
  const Sent all = sent();
  sets.push_back(keeping);
  const bool saves =
      keeping.find("prefetch") == keeping.npos && keeping.find("live") == keeping.npos;
  CHECK((sent().first < all.first) == saves);
}

TEST_CASE("what optimizers gather that see whole tensors is predicted", "[replay]") {
  const std::string optimizer(GENERATE(from_range(optimizers())).name);
  const std::string strategy = GENERATE("ddp", "zero1", "zero3", "hybrid_shard");
  const std::string over = GENERATE("false", "true");
  CAPTURE(optimizer, strategy, over);
  std::vector<std::string> sets = {"optim.name=" + optimizer, "parallel.strategy=" + strategy};
  if (find_strategy(strategy).hybrid)
    sets.insert(sets.end(), {"parallel.shard_size=2", "parallel.optimizer_over_replicas=" + over});
  const RunConfig config = small_run(sets);
  CHECK(sent_in_a_step(config, "inproc", 6) == predicted(config, network_of("inproc", 6)));
}

TEST_CASE("large buffers are predicted too, whatever algorithm they take", "[replay]") {
  const auto [transport, strategy, world_size] = GENERATE(from_range(
      combinations(std::vector<std::string>{"inproc", "shm"},
                   std::vector<std::string>{"ddp", "zero2", "zero3"}, std::vector<int>{2, 3, 5})));
  CAPTURE(transport, strategy, world_size);
  const RunConfig config = small_run(
      {"parallel.strategy=" + strategy, "model.hidden=256", "model.heads=2", "model.layers=1"});
  CHECK(sent_in_a_step(config, transport, world_size) ==
        predicted(config, network_of(transport, world_size)));
}

TEST_CASE("one rank sends nothing", "[replay]") {
  const RunConfig config = small_run({"parallel.strategy=zero3"});
  CHECK(predicted(config, network_of("shm", 1)) == std::vector<Sent>{{0, 0}});
}

}  // namespace
}  // namespace gxp
