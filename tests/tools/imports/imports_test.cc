#include "lib/tools/imports/import.h"

#include <algorithm>
#include <fstream>

#include "lib/base/error.h"
#include "lib/config/load.h"
#include "lib/tools/imports/run_file.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

using Arguments = std::map<std::string, std::string>;

class ImportedText {
 public:
  explicit ImportedText(const std::string& text) { std::ofstream(path()) << text; }
  [[nodiscard]] std::string path(const std::string& name = "config") const {
    return directory_ / name;
  }
  ImportResult import(const Arguments& arguments = {}, int ranks = 8) const {
    return import_file({.path = path(), .ranks = ranks, .arguments = arguments});
  }

 private:
  TemporaryDirectory directory_;
};

const ImportedKey& key_of(const ImportResult& result, const std::string& name) {
  const auto key = std::ranges::find(result.keys, name, &ImportedKey::key);
  REQUIRE(key != result.keys.end());
  return *key;
}

// What a kConfig error says.
template <class Call>
std::string complaint_of(Call call) {
  const Caught caught = error_of(call);
  CHECK(caught.kind == ErrorKind::kConfig);
  return caught.message;
}

}  // namespace

TEST_CASE("the kind of a configuration is recognised by its content", "[imports]") {
  const auto [text, kind] = GENERATE(table<std::string, std::optional<SourceKind>>(
      {{"{\"zero_optimization\": {\"stage\": 2}, \"train_batch_size\": 8}", SourceKind::kDeepSpeed},
       {"// x\n{ train_batch_size: 8 }", SourceKind::kDeepSpeed},
       {"{\"output_dir\": \"o\", \"max_steps\": 5}", SourceKind::kTrainer},
       {"{\"distributed_type\": \"NO\", \"num_processes\": 8}", SourceKind::kAccelerate},
       {"# x\ndistributed_type: NO\nnum_processes: 8\n", SourceKind::kAccelerate},
       {"[training]\nsteps = 5\n[parallelism]\n", SourceKind::kTorchtitan},
       {"mpirun -np 2 ./train_gpt2cu -b 4", SourceKind::kLlmc},
       {"-b 4 -t 64", SourceKind::kLlmc},
       {"[optim]\nlr = 1\n", std::nullopt},
       {"hello: world\n", std::nullopt},
       {"hello", std::nullopt},
       {std::string("PK\x03\x04zip"), std::nullopt},
       {"{\"a\": \"\xff\"}", std::nullopt},
       {"", std::nullopt}}));
  CAPTURE(text);
  const ImportResult result = ImportedText(text).import();
  CHECK(result.imports() == kind.has_value());
  if (kind) CHECK(result.kind == kind);
}

TEST_CASE("auto takes an argument, or the default of transformers, which is said", "[imports]") {
  const ImportedText file(
      R"({"optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}},
          "train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3,
          "stage3_prefetch_bucket_size": "auto", "contiguous_gradients": "auto"}})");
  const ImportResult given = file.import({{"learning_rate", "3e-5"},
                                          {"adam_beta2", "0.9"},
                                          {"adam_beta1", "0.8"},
                                          {"hidden_size", "100"},
                                          {"per_device_train_batch_size", "2"}});
  CHECK(*given.find("optim.lr") == Value(3e-5));
  CHECK(*given.find("optim.beta2") == Value(0.9));
  CHECK(*given.find("parallel.prefetch_params") == Value(int64_t{9000}));
  CHECK(*given.find("train.micro_batch") == Value(int64_t{2}));
  CHECK(key_of(given, "optimizer.params.lr").verdict == Verdict::kMapped);
  const ImportResult assumed = file.import();
  CHECK(*assumed.find("optim.lr") == Value(5e-5));
  CHECK(assumed.find("parallel.prefetch_params") == nullptr);
  const ImportedKey& rate = key_of(assumed, "optimizer.params.lr");
  CHECK(rate.verdict == Verdict::kChanged);
  CHECK(rate.note.find("no learning_rate is given") != std::string::npos);
}

TEST_CASE("an argument that auto does not know is an error", "[imports]") {
  const ImportedText file("{\"train_batch_size\": 8}");
  CHECK(complaint_of([&] {
          file.import({{"learning_rat", "1"}});
        }).find("did you mean 'learning_rate'") != std::string::npos);
  const ImportedText automatic(R"({"gradient_clipping": "auto", "train_batch_size": 8})");
  CHECK(complaint_of([&] {
          automatic.import({{"max_grad_norm", "x"}});
        }) == "--import-arg max_grad_norm=x: must be a number");
}

TEST_CASE("auto where nothing resolves it is refused", "[imports]") {
  const ImportResult result =
      ImportedText(R"({"train_batch_size": 8, "zero_optimization": {"stage": "auto"}})").import();
  CHECK(result.errors == std::vector<std::string>{"zero_optimization.stage: stages are 0 to 3"});
}

TEST_CASE("a file that another names is read, and must not contradict it", "[imports]") {
  const ImportedText file(R"({"output_dir": "o", "learning_rate": 1e-4, "deepspeed": "ds.json"})");
  const auto import_with = [&](const std::string& rate) {
    std::ofstream(file.path("ds.json")) << R"({"optimizer": {"type": "AdamW", "params": {"lr": )"
                                        << rate << R"(}}, "train_micro_batch_size_per_gpu": 8})";
    return file.import();
  };
  CHECK(import_with("\"auto\"").imports());
  CHECK(import_with("1e-4").imports());
  const ImportResult result = import_with("2e-4");
  REQUIRE(result.errors.size() == 1);
  CHECK(result.errors[0].find("optim.lr is 0.0002 there and 0.0001 here") != std::string::npos);
}

TEST_CASE("a DeepSpeed block inside the arguments is imported, too", "[imports]") {
  const ImportResult result =
      ImportedText(R"({"output_dir": "o", "bf16": true, "lr_scheduler_type": "cosine",
                       "deepspeed": {"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2},
                                     "train_micro_batch_size_per_gpu": "auto"}})")
          .import();
  CHECK(result.imports());
  CHECK(*result.find("parallel.strategy") == Value("zero2"));
  CHECK(*result.find("lr_schedule.name") == Value("cosine"));
}

TEST_CASE("lost line ends of a YAML are restored in the error", "[imports]") {
  const ImportResult result =
      ImportedText("distributed_type: FSDP fsdp_config:fsdp_version: 2 num_processes: 2").import();
  REQUIRE(result.errors.size() == 1);
  CHECK(
      result.errors[0].ends_with("the line breaks are lost; write:\ndistributed_type: FSDP\n"
                                 "fsdp_config:\n  fsdp_version: 2\nnum_processes: 2\n"));
}

TEST_CASE("steps that only the data decides are not forgotten", "[imports]") {
  const ImportResult result =
      ImportedText(R"({"output_dir": "o", "num_train_epochs": 2})").import();
  const std::string run_file = to_run_file(result, {});
  CHECK(run_file.find("steps = 0 ") != std::string::npos);
  const std::vector<std::string> problems = remaining_problems(run_file, "run.toml");
  CHECK(std::ranges::any_of(problems, [](const std::string& problem) {
    return problem.find("train.steps: must be positive") != std::string::npos;
  }));
  const std::vector<std::string> sets = {"train.steps=7", "data.train=a.txt", "model.layers=2"};
  CHECK(remaining_problems(to_run_file(result, sets), "run.toml").empty());
}

TEST_CASE("a key that no version knows is named with the nearest one", "[imports]") {
  const ImportResult ours =
      ImportedText(R"({"train_batch_size": 8, "gradient_cliping": 1})").import();
  CHECK(ours.imports());
  CHECK(key_of(ours, "gradient_cliping").note ==
        "unknown key, which the program ignores; did you mean 'gradient_clipping'?");
  const ImportResult theirs = ImportedText("[training]\nstep = 5\nseq_len = 3\n").import();
  CHECK(theirs.errors.front() == "training.step: unknown key; did you mean 'steps'?");
}

}  // namespace gxp
