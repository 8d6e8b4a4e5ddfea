// Generated tokens.
#include "lib/train/model/generation.h"

#include <filesystem>

#include "lib/config/load.h"
#include "lib/train/model_view.h"
#include "tests/train/recorded_runs.h"

namespace gxp {
namespace {

Tokens read_tokens(const NamedTensors& file, const std::string& name) {
  const auto ids = read_all<int64_t>(file, name);
  return {ids.begin(), ids.end()};
}

// Those whose greedy tokens transformers has recorded.
std::vector<std::string> models_with_tokens() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kRecorded)) {
    const std::string reference = entry.path() / "reference.safetensors";
    // Its config.json contradicts it, so it is refused.
    if (entry.path().filename() == "llama-tied-head-differs") continue;
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    if (find_tensor(read_checkpoint(reference), "greedy.input_ids") != nullptr)
      names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

Tokens generate_on(int world_size, const RunConfig& config, const GenerationRequest& request) {
  return run_ranks(world_size, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, world_size);
    return view_model(config, communicator, backend, {.generation = request}).generated;
  })[0];
}

Tokens generate_golden(const GenerationRequest& request, const Settings& sets = {},
                       int world_size = 1) {
  return generate_on(world_size, golden_config("gpt2-accum", 1, sets), request);
}

TEST_CASE("greedy tokens are the library's, of every model, on any ranks", "[train]") {
  const std::string name = GENERATE(from_range(models_with_tokens()));
  const int world_size = GENERATE(1, 2);
  const std::string strategy = GENERATE("ddp", "zero3");
  CAPTURE(name, world_size, strategy);
  const NamedTensors reference = reference_of(name);
  const Settings sets = {"model.init=" + kRecorded + name, "parallel.strategy=" + strategy,
                         "train.threads=1", "train.device=cpu"};
  const RunConfig config = load_config("", sets, {}, false).run;
  const Tokens expected = read_tokens(reference, "greedy.output_ids");
  GenerationRequest request{.prompt = read_tokens(reference, "greedy.input_ids"),
                            .sampling = {.temperature = 0}};
  request.count = int(expected.size() - request.prompt.size());
  CHECK(generate_on(world_size, config, request) == expected);
}

TEST_CASE("tokens do not depend on the strategy, and on the seed alone", "[train]") {
  const auto tokens = [](uint64_t seed, const Settings& sets = {}, int world_size = 1) {
    return generate_golden(
        {.prompt = {1, 2, 3}, .count = 20, .sampling = {.temperature = 1}, .seed = seed}, sets,
        world_size);
  };
  const Tokens expected = tokens(1);
  REQUIRE(expected.size() == 23);
  CHECK(expected[2] == 3);
  for (const int32_t token : expected) CHECK((token >= 0 && token < 61));
  CHECK(tokens(1) == expected);
  CHECK(tokens(2) != expected);
  CHECK(tokens(1, {"parallel.strategy=zero1"}, 3) == expected);
  CHECK(tokens(1, {"parallel.strategy=zero3"}, 3) == expected);
  CHECK(tokens(1, {"offload.optimizer=memory", "offload.parameters=memory"}) == expected);
}

TEST_CASE("halves are generated from, too", "[train]") {
  const auto greedy = [](const Settings& sets, int world_size) {
    return generate_golden({.prompt = {1, 2, 3}, .count = 10, .sampling = {.temperature = 0}}, sets,
                           world_size);
  };
  const Tokens expected = greedy({"train.precision=bf16"}, 1);
  CHECK(expected.size() == 13);
  CHECK(greedy({"train.precision=bf16", "parallel.strategy=zero3"}, 2) == expected);
}

TEST_CASE("tokens are emitted as they come, and end with a stop or where the context is full",
          "[train]") {
  Tokens emitted;
  int ends = 0;
  GenerationRequest request{.prompt = {1, 2, 3}, .count = 40, .sampling = {.temperature = 0}};
  request.emit = [&](int32_t token) { emitted.push_back(token); };
  request.finish = [&] { ++ends; };
  const Tokens all = generate_golden(request);
  CHECK(all.size() == 25);  // the model has seen 24, its context, when it makes the last
  CHECK(emitted == all);
  CHECK(ends == 1);
  request.stops = {{60, 60, 60, 60}, {all[7], all[8]}};
  const Tokens stopped = generate_golden(request);
  const auto found =
      std::search(all.begin() + 3, all.end(), request.stops[1].begin(), request.stops[1].end());
  CHECK(stopped == Tokens(all.begin(), found + 2));
}

}  // namespace
}  // namespace gxp
