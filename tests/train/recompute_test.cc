// Activations that are kept or made again: the same bits, in more or less memory.
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

// A model of three blocks, for more than the last of them, of widths that fp8 can have.
Settings deeper_sets(const std::string& folder, Settings sets) {
  if (folder == "llama-tiny") sets.emplace_back("model.head_size=16");
  sets.insert(sets.begin(), {"model.layers=3", "model.init=normal", "train.micro_batch=1",
                             "train.grad_accum=2", "train.steps=4"});
  return sets;
}

RunConfig deeper(const std::string& folder, const Settings& sets) {
  return golden_config(folder, 1, deeper_sets(folder, sets));
}

TEST_CASE("every strategy trains to the bits of DDP, whatever it keeps and makes again",
          "[train][table]") {
  const auto [folder, types, strategy, recompute, keep] = GENERATE(from_range(combinations(
      tiny_runs(),
      std::vector<Settings>{{"train.precision=fp32"},
                            {"train.precision=bf16"},
                            {"train.precision=fp16"},
                            {"train.precision=bf16", "train.matmul=fp8"}},
      std::vector<std::string>{"ddp", "zero1", "zero2", "zero3", "shard_grad_op", "hybrid_shard"},
      std::vector<std::string>{"none", "selective", "full"},
      std::vector<std::string>{"none", "norms", "all"})));
  CAPTURE(folder, types, strategy, recompute, keep);
  const int shard_size = find_strategy(strategy).hybrid ? 2 : 0;
  const RunConfig config =
      deeper(folder, types + Settings{"parallel.strategy=" + strategy,
                                      fmt::format("parallel.shard_size={}", shard_size),
                                      "train.recompute=" + recompute, "train.keep=" + keep});
  const Trained& ddp = trained_once(folder, 4, deeper_sets(folder, types), 1);
  for (const Trained& rank : train_on_ranks(config, 4)) check_same(rank, ddp);
}

TEST_CASE("any-world-size: recomputation changes no bit on any number of ranks", "[train]") {
  const std::string folder = GENERATE(from_range(tiny_runs()));
  const auto train = [&](int world_size, const std::string& strategy, const char* recompute) {
    return train_on_ranks(
        deeper(folder, {"train.deterministic=any-world-size", "parallel.strategy=" + strategy,
                        fmt::format("train.grad_accum={}", 8 / world_size),
                        fmt::format("train.recompute={}", recompute)}),
        world_size)[0];
  };
  const Trained plain = train(1, "ddp", "none");
  for (const auto& [world_size, strategy, recompute] :
       combinations(std::vector<int>{1, 2, 4, 8}, std::vector<std::string>{"ddp", "zero3"},
                    std::vector<const char*>{"selective", "full"})) {
    CAPTURE(folder, world_size, strategy, recompute);
    check_same(train(world_size, strategy, recompute), plain);
  }
}

TEST_CASE("some units can make their activations again and others keep them", "[train]") {
  const auto [folder, units] = GENERATE(table<std::string, std::string>(
      {{"gpt2-tiny", "h.0,h.2"}, {"gpt2-tiny", "h.1"}, {"llama-tiny", "layers.[12]"}}));
  const Trained plain = train_on_ranks(deeper(folder, {}), 2)[0];
  const RunConfig config =
      deeper(folder, {"train.recompute=full", "train.recompute_units=" + units});
  check_same(train_on_ranks(config, 2)[0], plain);
}

TEST_CASE(
    "a hundred steps end with one set of bits under all strategies, recomputations and "
    "splits into micro-batches",
    "[train][.long]") {
  const std::string folder = GENERATE(from_range(tiny_runs()));
  const std::string precision = GENERATE("train.precision=fp32", "train.precision=bf16");
  const int world_size = GENERATE(2, 4);
  const int grad_accum = GENERATE(1, 4);
  const auto train = [&](const std::string& strategy, const char* recompute) {
    std::vector<std::string> sets = {
        precision, "train.steps=100", fmt::format("train.grad_accum={}", grad_accum),
        fmt::format("train.recompute={}", recompute), "parallel.strategy=" + strategy};
    if (find_strategy(strategy).hybrid) sets.emplace_back("parallel.shard_size=2");
    return train_on_ranks(deeper(folder, sets), world_size);
  };
  const Trained ddp = train("ddp", "none")[0];
  for (const Strategy& strategy : strategies()) {
    for (const char* recompute : {"none", "selective", "full"}) {
      CAPTURE(folder, precision, world_size, grad_accum, strategy.name, recompute);
      for (const Trained& rank : train(std::string(strategy.name), recompute))
        check_same(rank, ddp);
    }
  }
}

}  // namespace
}  // namespace gxp
