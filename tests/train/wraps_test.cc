// FSDP wrap policies and prefetching change what is gathered when, and no bit.
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

std::vector<Trained> train(const std::string& folder, std::vector<std::string> sets) {
  constexpr int kRanks = 2;
  sets.insert(sets.end(), {"train.micro_batch=1", "train.grad_accum=2", "train.steps=4"});
  return train_on_ranks(golden_config(folder, 1, sets), kRanks);
}

TEST_CASE("under one wrap policy, every strategy has the bits of DDP", "[train][table]") {
  const auto [folder, wrap, strategy] = GENERATE(from_range(
      combinations(tiny_runs(),
                   std::vector<Settings>{
                       {"parallel.wrap=none"},
                       {"parallel.wrap=size", "parallel.wrap_min_params=10000"},
                       {"parallel.wrap=match", "parallel.wrap_units=[\"*.1\"]", "optim.name=muon"},
                       {"parallel.wrap=match", "parallel.wrap_units=[\"*.0\", \"head\"]",
                        "train.deterministic=any-world-size", "train.recompute=full"}},
                   std::vector<std::string>{"zero1", "zero2", "zero3", "shard_grad_op"})));
  CAPTURE(folder, wrap, strategy);
  Settings sharded = wrap;
  sharded.push_back("parallel.strategy=" + strategy);
  const Trained ddp = train(folder, wrap)[0];
  for (const Trained& rank : train(folder, sharded)) check_same(rank, ddp);
}

TEST_CASE("when parameters are gathered makes no difference", "[train][table]") {
  const auto [forward, backward, strategy, keep] = GENERATE(from_range(combinations(
      std::vector<std::string>{"true", "false"}, std::vector<std::string>{"pre", "post", "none"},
      std::vector<std::string>{"zero3", "shard_grad_op"},
      std::vector<std::string>{"parallel.prefetch_wraps=3", "parallel.max_live_params=20000",
                               "parallel.persist_params=20000", "parallel.reuse_params=30000",
                               "parallel.hold_parameters=true"})));
  CAPTURE(forward, backward, strategy, keep);
  const auto ranks =
      train("gpt2-tiny", {"parallel.strategy=" + strategy, "parallel.forward_prefetch=" + forward,
                          "parallel.backward_prefetch=" + backward, keep});
  check_same(ranks[1], train("gpt2-tiny", {})[0]);
}

}  // namespace
}  // namespace gxp
