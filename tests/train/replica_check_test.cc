#include "lib/train/replica_check.h"

#include "kernels/forwarded_ops.h"
#include "tests/catch.h"
#include "tests/error_of.h"
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

// A bit of one gradient changes before the optimizer reads it, once.
class SpoiltGradient final : public ForwardedOps<SpoiltGradient> {
 public:
  explicit SpoiltGradient(std::unique_ptr<Ops> ops) : ops_(std::move(ops)) {}
  [[nodiscard]] std::string description() const override { return ops_->description(); }
  template <class Result, class... Parameters, class... Given>
  Result carry_out(OpsCall /*call*/, Result (Ops::*operation)(Parameters...),
                   const Given&... given) {
    return (ops_.get()->*operation)(given...);
  }
  void apply_all(std::span<const ElementwiseCall> calls) override {
    if (std::holds_alternative<AdamWUpdate>(calls[0].math) && !std::exchange(is_spoilt_, true)) {
      const_cast<std::byte*>(calls[0].read[0].memory.data)[3] ^= std::byte{1};  // f32's exponent
    }
    ops_->apply_all(calls);
  }
  void adamw_packed(std::span<const PackedAdamW> calls) override { ops_->adamw_packed(calls); }

 private:
  std::unique_ptr<Ops> ops_;
  bool is_spoilt_ = false;
};

}  // namespace

TEST_CASE("a changed bit of a gradient is found, or all ranks have what came of it", "[train]") {
  const auto [strategy, named] = GENERATE(table<std::string, std::string>(
      {{"ddp", "rank 2 holds other values of transformer.wte.weight than ranks 0, 1, 3"},
       {"zero1", ""},
       {"zero3", ""}}));
  CAPTURE(strategy);
  const RunConfig config = golden_config("gpt2-tiny", 4, {"parallel.strategy=" + strategy});
  const auto train_four = [&](bool spoils) {
    return run_ranks(4, [&](Communicator& c) {
      Backend backend = make_backend(config.train, 4);
      if (spoils && c.rank() == 2)
        backend.ops = std::make_unique<SpoiltGradient>(std::move(backend.ops));
      Trainer trainer(config, c, backend);
      trainer.initialise_weights();
      ReplicaCheck replicas(trainer, c, backend);
      for (int step = 0; step < 2; ++step) trainer.step(false);  // Adam's first has one size
      const Caught caught = error_of([&] { replicas.check(); });
      return std::pair(caught.message,
                       caught.kind ? std::vector<Values>() : weights_of(trainer, c));
    });
  };
  const auto ranks = train_four(true);
  for (const auto& [text, weights] : ranks) {
    CAPTURE(text);
    CHECK(text.find(named) != std::string::npos);
    CHECK(text.empty() == named.empty());
    CHECK(same_bits(weights, ranks[0].second));
  }
  if (named.empty()) CHECK_FALSE(same_bits(ranks[0].second, train_four(false)[0].second));
}

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
