// `gxp train` of runs that make no steps.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/ckpt/format.h"
#include "tests/catch.h"
#include "tests/cmd/golden_run.h"
#include "tests/data/token_samples.h"

namespace gxp {
namespace {

using nlohmann::json;

const std::string kModels = std::string(GXP_TEST_DATA) + "/models/";

// A run file that names data and a model, and nothing else. {} in its text is its directory.
class ViewRun {
 public:
  explicit ViewRun(const std::string& text) {
    make_file(path("run.toml"), fmt::format(fmt::runtime(text), directory_.path()));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ / name; }
  [[nodiscard]] Outcome run(const Arguments& more) const {
    return run_gxp(Arguments{"train", path("run.toml"), "--set", "train.device=cpu"} + more);
  }
  [[nodiscard]] json json_of(Arguments more) const {
    more.insert(more.end(), {"--format", "json"});
    const Outcome outcome = run(more);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out);
  }

 private:
  TemporaryDirectory directory_;
};

std::string text_of_bytes(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += char('a' + i * i % 23);
  return text;
}

// A model of bytes, with random weights, and text of five and a half rows.
struct ByteRun : ViewRun {
  ByteRun()
      : ViewRun(
            "[model]\ncontext = 16\nhidden = 32\nlayers = 2\nheads = 2\n"
            "[data]\nvalid = [\"{}/text\"]\n") {
    make_file(path("text"), text_of_bytes(5 * 16 + 9));
  }
};

TEST_CASE("--evaluate gives the loss of data.valid, the same on any number of ranks", "[cmd]") {
  const ByteRun run;
  const json one = run.json_of({"--evaluate"});
  const double loss = one["valid_loss"];
  CHECK(one["schema"] == "gxp.train-evaluation/1");
  CHECK(loss == Approx(std::log(256)).epsilon(0.05));  // of random weights
  CHECK(one["perplexity"].get<double>() == Approx(std::exp(loss)));
  CHECK(one["bits_per_byte"].get<double>() == Approx(loss / std::log(2.0)));
  CHECK(one["tokens"] == 5 * 16);
  CHECK(one["world_size"] == 1);
  CHECK(one["step"].is_null());
  CHECK_FALSE(one.contains("generated_ids"));
  for (const char* nproc : {"2", "3"}) {
    for (const char* strategy : {"ddp", "zero3"}) {
      const json more = run.json_of({"--evaluate", "--nproc", nproc, "--set", "train.micro_batch=1",
                                     "--set", fmt::format("parallel.strategy={}", strategy)});
      CHECK(more["valid_loss"].get<double>() == Approx(loss).epsilon(1e-6));
      CHECK(more["tokens"] == 5 * 16);
    }
  }
  const Outcome text = run.run({"--evaluate"});
  CHECK(text.code == 0);
  CHECK_THAT(text.out, Catch::Contains("validation loss: ") && Catch::Contains("perplexity: ") &&
                           Catch::Contains("bits per byte: ") &&
                           Catch::Contains("validation tokens: 80\n"));
}

TEST_CASE("--evaluate of a checkpoint has the validation loss of the run that made it", "[cmd]") {
  const GoldenRun run("gpt2-tiny", 1);
  const json spec = json::parse(read_file(run.golden("spec.json")));
  const size_t row_bytes = (spec["data"]["seq"].get<size_t>() + 1) * sizeof(int32_t);
  const size_t rows = read_file(run.golden("tokens.i32")).size() / row_bytes;
  Arguments arguments = {"--set",    fmt::format("data.valid={}", run.golden("tokens.i32")),
                         "--set",    fmt::format("train.valid_batches={}", rows),
                         "--format", "json"};
  const Outcome trained = run.run(arguments);
  CAPTURE(trained.err);
  REQUIRE(trained.code == 0);
  arguments.insert(arguments.begin(), {"train", run.path("run.toml"), "--evaluate", "--resume"});
  const Outcome evaluated = run_gxp(arguments);
  CAPTURE(evaluated.err);
  REQUIRE(evaluated.code == 0);
  const json view = json::parse(evaluated.out);
  CHECK(view["step"] == spec["data"]["steps"]);
  CHECK(view["tokens"] == rows * spec["data"]["seq"].get<size_t>());
  CHECK(view["valid_loss"] == json::parse(trained.out)["valid_loss"]);
  CHECK(view.contains("bits_per_token"));
}

TEST_CASE("rows with labels are named in the log, and what counts in metrics and evaluation",
          "[cmd]") {
  constexpr int kRows = 6, kLength = 17;
  const TokenDirectory data;
  std::vector<int32_t> elements;
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kLength; ++i) elements.push_back(7 * row + i);
    for (int i = 0; i < kLength; ++i) elements.push_back(i > 8 + row ? 7 * row + i : -100);
  }
  const int targets = 8 + 7 + 6 + 5 + 4 + 3;
  const std::string rows =
      data.write_numpy("rows.npy", "<i4", fmt::format("({}, 2, {})", kRows, kLength), elements, 1);
  const ByteRun run;
  const auto on_two_ranks = [&](const Arguments& more) {
    return Arguments{"--nproc", "2", "--set", "data.valid=" + rows} + more;
  };
  const json view = run.json_of(on_two_ranks({"--evaluate"}));
  CHECK(view["tokens"] == targets);
  CHECK(view["perplexity"].get<double>() == Approx(std::exp(view["valid_loss"].get<double>())));
  const Outcome trained =
      run.run(on_two_ranks({"--set", "data.train=" + rows, "--set", "train.steps=1", "--set",
                            "train.micro_batch=3", "--metrics", run.path("metrics")}));
  CAPTURE(trained.err);
  REQUIRE(trained.code == 0);
  CHECK_THAT(trained.err, Catch::Contains("rows.npy: .npy with labels, ") &&
                              Catch::Contains("102 tokens in 6 rows") &&
                              Catch::Contains("targets 33 of 96"));
  const json line = json::parse(read_file(run.path("metrics")));
  CHECK(line["tokens"] == 96);
  CHECK(line["targets"] == targets);
  CHECK(line["loss"].get<double>() == Approx(view["valid_loss"].get<double>()).epsilon(1e-6));
}

TEST_CASE("a directory's model continues token ids, which come as they are drawn", "[cmd]") {
  const std::string model = kModels + "llama-plain";
  const ViewRun run("[model]\ninit = \"" + model + "\"\n");
  const NamedTensors reference = read_checkpoint(model + "/reference.safetensors");
  const auto ids = [&](const std::string& name, const char* separator) {
    const NamedTensor& tensor = *find_tensor(reference, name);
    std::vector<int64_t> values(tensor.info.count());
    tensor.read(0, memory_of(values));
    return fmt::format("{}", fmt::join(values, separator));
  };
  const Arguments greedy = {"--generate", "14",           "--temperature",
                            "0",          "--prompt-ids", ids("greedy.input_ids", ",")};
  const Outcome text = run.run(greedy);
  CAPTURE(text.err);
  CHECK(text.code == 0);
  CHECK(text.out == ids("greedy.output_ids", " ") + "\n");
  const json object = run.json_of(greedy);
  CHECK(object["generated_ids"].dump() == "[" + ids("greedy.output_ids", ",") + "]");
  CHECK_FALSE(object.contains("generated"));
  CHECK_FALSE(object.contains("valid_loss"));
  const Outcome stopped = run.run({"--generate", "14", "--temperature", "0", "--prompt-ids",
                                   ids("greedy.input_ids", ","), "--stop",
                                   std::to_string(object["generated_ids"][6].get<int>())});
  CHECK(text.out.starts_with(stopped.out.substr(0, stopped.out.size() - 1)));
  CHECK(std::ranges::count(stopped.out, ' ') < 14 + 4);
}

TEST_CASE("a model of bytes continues text, of a seed, up to its context", "[cmd]") {
  const ByteRun run;
  const Arguments five = {"--generate", "5", "--prompt", "ab", "--seed", "3", "--top-k", "40"};
  const Outcome text = run.run(five);
  CAPTURE(text.err);
  REQUIRE(text.code == 0);
  CHECK(text.out.starts_with("ab"));
  CHECK(text.out.ends_with("\n"));
  CHECK(run.run(five).out == text.out);
  const json object = run.json_of(five);
  CHECK(object["generated_ids"].size() == 7);
  CHECK(object["generated"].get<std::string>().starts_with("ab"));
  const Outcome full = run.run({"--generate", "50", "--prompt", "ab"});
  CHECK(full.code == 0);
  CHECK_THAT(full.err, Catch::Contains("ends after 15 of 50 tokens: model.context, 16, is full"));
}

TEST_CASE("what cannot be looked at is refused, with the reason", "[cmd]") {
  const ByteRun bytes;
  const ViewRun ids("[model]\ninit = \"" + kModels + "llama-plain\"\n");
  struct Case {
    const ViewRun& run;
    Arguments arguments;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {ids, {"--evaluate"}, "name files in data.valid, or set data.validation_split"},
      {ids, {"--generate", "3"}, "gxp has no tokenizer for a vocabulary of"},
      {ids, {"--generate", "3", "--prompt", "a"}, "--prompt-ids"},
      {ids,
       {"--generate", "3", "--prompt", "hello", "--set", "data.tokenizer=byte"},
       "--prompt: it has the token 104, but model.vocab_size is 101"},
      {ids, {"--generate", "3", "--prompt-ids", "1,2x"}, "'2x' is not a token id from 0 to"},
      {ids, {"--generate", "3", "--prompt-ids", "1,999"}, "'999' is not a token id"},
      {ids, {"--generate", "3", "--prompt-ids", "1", "--stop", "the"}, "--stop"},
      {ids, {}, "data.train: must name at least one file"},
      {bytes, {"--generate", "3", "--prompt", ""}, "--prompt: must not be empty"},
      {bytes, {"--generate", "3", "--prompt", "0123456789abcdefg"}, "17 tokens, more than"},
      {bytes, {"--generate", "3", "--prompt", "a", "--prompt-ids", "1"}, "excludes"},
      {bytes, {"--prompt", "a"}, "requires --generate"},
      {bytes, {"--generate", "3", "--top-p", "1.5"}, "from 0 to 1"},
      {bytes, {"--generate", "3", "--temperature", "-1"}, "--temperature"},
      {bytes, {"--generate", "3", "--seed", "x"}, "must be a whole number"},
      {bytes, {"--evaluate", "--overwrite"}, "--overwrite: there are no steps"},
      {bytes, {"--evaluate", "--metrics", "m"}, "--metrics: there are no steps"},
      {bytes, {"--evaluate", "--resume"}, "checkpoint.dir is not set"},
  };
  for (const Case& refused : cases) {
    const Outcome outcome = refused.run.run(refused.arguments);
    CAPTURE(refused.arguments, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Catch::Contains(refused.reason));
  }
}

}  // namespace
}  // namespace gxp
