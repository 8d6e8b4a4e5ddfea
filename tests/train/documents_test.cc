// Training on packed rows, whose documents are kept apart.
#include "lib/replay/memory.h"
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/train/packed_documents.h"

namespace gxp {
namespace {

Trained train_packed(const PackedDocuments& documents, const RunConfig& config, int world_size) {
  return run_ranks(world_size, [&](Communicator& communicator) {
    return train(config, communicator, make_backend(config.train, world_size), documents.data());
  })[0];
}

struct PackedRun {
  std::string folder;
  PackedDocuments documents{golden_config(folder, 1).model.vocab_size};

  [[nodiscard]] RunConfig config(const Settings& more) const {
    return golden_config(folder, 1, documents.settings() + more);
  }
  [[nodiscard]] Trained train(int world_size, const Settings& more) const {
    Settings sets = {fmt::format("train.micro_batch={}", kPackedRows / size_t(world_size))};
    return train_packed(documents, config(sets + more), world_size);
  }
};

// Texts of a file, whose bytes are tokens, and each part of one that is in a row, in a row of its own.
struct TextRows {
  static constexpr size_t kLength = 21;  // of a row: data.sequence + 1
  TokenDirectory directory;
  size_t windows = 0, parts = 0;

  TextRows() {
    std::mt19937 random(7);
    std::string lines, stream;
    std::vector<size_t> begins;
    for (int i = 0; i < 20; ++i) {
      begins.push_back(stream.size());
      const std::string text(1 + random() % 30, char('a' + random() % 26));
      stream += text + std::to_string(i);
      lines += fmt::format("{{\"text\": \"{}{}\"}}\n", text, i);
    }
    std::vector<int32_t> rows;
    windows = (stream.size() - 1) / (kLength - 1);
    for (size_t first = 0; first < windows * (kLength - 1); first += kLength - 1)
      for (size_t at = first; at < first + kLength; ++parts) {
        const auto next = std::ranges::upper_bound(begins, at);
        const size_t end = std::min(next == begins.end() ? stream.size() : *next, first + kLength);
        std::vector<int32_t> ids(kLength), labels(kLength, kNoLabel);
        std::copy(stream.begin() + long(at), stream.begin() + long(end), ids.begin());
        std::copy_n(ids.begin(), end - at, labels.begin());
        for (const auto& plane : {ids, labels}) rows.insert(rows.end(), plane.begin(), plane.end());
        at = end;
      }
    directory.write("texts.jsonl", lines);
    directory.write_numpy("apart.npy", "<i4", fmt::format("({}, 2, {})", parts, kLength), rows, 1);
  }
  [[nodiscard]] StepResult step(const std::string& folder, const std::string& file, size_t rows,
                                const Settings& more = {}) const {
    const Settings sets = {"data.train=" + directory / file,
                           "data.cache=" + directory / "tokens",
                           "data.tokenizer=byte",
                           "model.init=normal",
                           "model.vocab_size=256",
                           fmt::format("data.sequence={}", kLength - 1),
                           fmt::format("train.micro_batch={}", rows),
                           "train.grad_accum=1",
                           "train.steps=1"};
    return train_on_ranks(golden_config(folder, 1, sets + more), 1)[0].steps[0];
  }
};

}  // namespace

TEST_CASE("a file's texts train as each part of one in a row of its own", "[train]") {
  const std::string folder = GENERATE("gpt2-accum", "llama-tiny");
  const TextRows texts;
  const StepResult packed = texts.step(folder, "texts.jsonl", texts.windows);
  const StepResult apart = texts.step(folder, "apart.npy", texts.parts);
  CHECK(packed.targets == apart.targets);
  CHECK(packed.loss == Approx(apart.loss).epsilon(1e-6));
  CHECK(packed.grad_norm == Approx(apart.grad_norm).epsilon(2e-6));
  const StepResult crossing =
      texts.step(folder, "texts.jsonl", texts.windows, {"data.cross_documents=true"});
  CHECK(crossing.targets == texts.windows * (TextRows::kLength - 1));
  CHECK(crossing.loss != packed.loss);
}

TEST_CASE("packed rows train as their documents do in rows of their own", "[train]") {
  const std::string folder = GENERATE("gpt2-accum", "llama-tiny");
  const auto [precision, of_losses, of_gradients] =
      GENERATE(table<std::string, double, double>({{"fp32", 1e-6, 2e-6}, {"bf16", 1e-3, 2e-2}}));
  CAPTURE(folder, precision);
  const PackedRun run{folder};
  const Settings type = {"train.precision=" + precision};
  const Trained packed = run.train(1, type);
  const Trained apart =
      train_on_ranks(golden_config(folder, 1, run.documents.settings_apart() + type), 1)[0];
  for (size_t s = 0; s < packed.steps.size(); ++s) {
    CHECK(packed.steps[s].targets == apart.steps[s].targets);
    CHECK(packed.steps[s].loss == Approx(apart.steps[s].loss).epsilon(of_losses));
  }
  CHECK(packed.steps[0].grad_norm == Approx(apart.steps[0].grad_norm).epsilon(of_gradients));
  CHECK(relative_distance(packed.first_gradients, apart.first_gradients) < of_gradients);
}

TEST_CASE("packed rows train to the same bits under every strategy, whatever is made again",
          "[train][table]") {
  const auto [folder, strategy, recompute, grad_accum, precision] =
      GENERATE(from_range(combinations<std::string, std::string, std::string, int, std::string>(
          {"gpt2-accum", "llama-tiny"}, {"zero2", "zero3"}, {"none", "selective", "full"}, {1, 2},
          {"fp32", "bf16"})));
  CAPTURE(folder, strategy, recompute, grad_accum, precision);
  const PackedRun run{folder};
  const Settings sets = {fmt::format("train.grad_accum={}", grad_accum),
                         fmt::format("train.micro_batch={}", 4 / grad_accum),
                         "train.precision=" + precision};
  check_same(run.train(2, sets + Settings{"parallel.strategy=" + strategy,
                                          "train.recompute=" + recompute}),
             run.train(2, sets));
}

TEST_CASE("any-world-size: packed rows train to the same bits on 1, 2 and 4 ranks", "[train]") {
  const PackedRun run{"gpt2-accum"};
  const auto train = [&](int world_size) {
    return run.train(world_size, {"train.deterministic=any-world-size", "train.micro_batch=2",
                                  fmt::format("train.grad_accum={}", 4 / world_size)});
  };
  const Trained one = train(1);
  for (const int world_size : {2, 4}) check_same(train(world_size), one);
}

TEST_CASE("with data.cross_documents packed rows train to the bits of rows without documents",
          "[train]") {
  const PackedRun run{"gpt2-accum"};
  const Trained crossing = run.train(1, {"data.cross_documents=true"});
  check_same(crossing, train_on_ranks(run.config({}), 1)[0]);
  CHECK(crossing.steps[0].targets == kPackedRows * (kPackedLength - 1));
  CHECK(crossing.steps[0].loss != run.train(1, {}).steps[0].loss);
}

TEST_CASE("packed validation has the loss that a step on the same rows has", "[train]") {
  const PackedRun run{"llama-tiny"};
  const RunConfig config = run.config({"train.valid_batches=1", "train.micro_batch=8"});
  const auto losses = run_ranks(1, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 1);
    RunConfig validated = config;
    validated.data.valid = config.data.train;
    Trainer trainer(validated, communicator, backend,
                    {run.documents.dataset(), run.documents.dataset()});
    trainer.initialise_weights();
    const double valid = trainer.validate();
    return std::pair(valid, trainer.step(false).loss);
  });
  CHECK(losses[0].first == Approx(losses[0].second).epsilon(1e-6));
}

TEST_CASE("the memory of packed rows is planned to the byte", "[train]") {
  const std::string folder = GENERATE("gpt2-accum", "llama-tiny");
  const std::string recompute = GENERATE("none", "full");
  const PackedRun run{folder};
  RunConfig config = run.config({"train.recompute=" + recompute, "train.grad_accum=2"});
  const auto found = run_ranks(1, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 1);
    Trainer trainer(config, communicator, backend, run.documents.data());
    trainer.initialise_weights();
    trainer.step(false);
    return backend.device->tracker().peak().by_kind;
  });
  const auto planned = [&] {
    return memory_of_run(plan_run(config, 1), {.world_size = 1, .transport = "inproc"}, 0, {}).peak;
  };
  const uint64_t without = total_of(planned());
  config.data.documents = RowDocuments::kApart;
  CHECK(found[0] == planned());
  CHECK(total_of(found[0]) > without);
}

}  // namespace gxp
