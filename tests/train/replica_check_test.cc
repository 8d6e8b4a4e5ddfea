#include "lib/train/replica_check.h"

#include "tests/catch.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

struct Spoilt {
  std::string strategy;
  Settings sets;
  bool state;         // the optimizer's, instead of a weight
  std::string named;  // part of the message; "": nothing holds the same
};

// Flips a bit of the last element that the rank holds of the first weight, or of the first state.
void spoil(Trainer& trainer, bool state) {
  const HeldTensor tensor = state ? trainer.state().kept()[0] : trainer.state().weights()[0];
  std::vector<std::byte> value(size_of(tensor.dtype()));
  trainer.state().read(tensor, tensor.elements.count - 1, memory_of(value));
  value[1] ^= std::byte{4};
  trainer.state().write(tensor, tensor.elements.count - 1, memory_of(std::as_const(value)));
}

}  // namespace

TEST_CASE("a changed bit of what several ranks hold is found, with the rank", "[train]") {
  const auto [strategy, sets, state, named] = GENERATE(values<Spoilt>({
      {"ddp", {}, false, "rank 2 holds other values of transformer.wte.weight than ranks 0, 1, 3"},
      {"ddp",
       {},
       true,
       "rank 2 holds other values of adam_m of transformer.wte.weight than ranks 0, 1, 3"},
      {"ddp",
       {"train.precision=bf16"},
       false,
       "rank 2 holds other values of transformer.wte.weight than"},
      {"ddp",
       {"offload.optimizer=memory"},
       true,
       "rank 2 holds other values of adam_m of transformer.wte.weight"},
      {"hybrid_shard",
       {"parallel.shard_size=2"},
       false,
       "ranks 0, 2 hold different values of transformer.wte"},
      {"zero1", {}, false, ""},
      {"zero3", {}, true, ""},
  }));
  CAPTURE(strategy, sets, state);
  const RunConfig config =
      golden_config("gpt2-tiny", 4, Settings{"parallel.strategy=" + strategy} + sets);
  const std::vector<std::string> said = run_ranks(4, [&](Communicator& c) -> std::string {
    Backend backend = make_backend(config.train, 4);
    Trainer trainer(config, c, backend);
    trainer.initialise_weights();
    ReplicaCheck replicas(trainer, c, backend);
    trainer.step(false);
    replicas.check();
    if (c.rank() == 2) spoil(trainer, state);
    try {
      replicas.check();
      return "";
    } catch (const Error& error) {
      return exit_code(error.kind()) == 5 ? error.what() : "another kind of error";
    }
  });
  for (const std::string& text : said) {
    CAPTURE(text);
    CHECK(text == said[0]);
    CHECK(text.find(named) != std::string::npos);
    CHECK(text.empty() == named.empty());
  }
}

}  // namespace gxp
