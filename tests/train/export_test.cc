// checkpoint.export.
#include "lib/ckpt/native/export_directory.h"

#include "lib/ckpt/cast.h"
#include "lib/ckpt/format.h"
#include "lib/ckpt/native/checkpoint.h"
#include "lib/config/print.h"
#include "lib/train/run.h"
#include "tests/catch.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

RunConfig config_of(const std::string& run, const std::string& dir, const Settings& more) {
  return golden_config(run, 1,
                       Settings{"train.steps=4", "checkpoint.every=1", "train.micro_batch=3",
                                "checkpoint.dir=" + dir + "/saved"} +
                           more);
}

void run_on_ranks(const RunConfig& config, int world_size) {
  run_ranks(world_size, [&](Communicator& c) {
    Backend backend = make_backend(config.train, world_size);
    RunOptions options;
    options.settings = flatten(config);
    return run_training(config, c, backend, options).steps;
  });
}

// By name, the hashes of the weights in this type.
std::map<std::string, std::string> weights_in(const std::string& path, StorageDType dtype) {
  std::map<std::string, std::string> hashes;
  const auto overflowed = std::make_shared<OverflowCount>(0);  // owners: here and the readers
  for (const NamedTensor& tensor : cast_weights(read_checkpoint(path), dtype, overflowed).tensors) {
    if (tensor.info.role == Role::kWeight) hashes[tensor.info.name] = sha256_hex(tensor);
  }
  return hashes;
}

}  // namespace

TEST_CASE("each checkpoint has its weights, rounded once, for transformers", "[train]") {
  const std::string family = GENERATE(from_range(tiny_runs()));
  const auto [name, dtype] = GENERATE(table<const char*, StorageDType>(
      {{"bf16", StorageDType::kBF16}, {"fp16", StorageDType::kF16}}));
  const TemporaryDirectory directory;
  run_on_ranks(config_of(family, directory.path(), {std::string("checkpoint.export=") + name}), 1);
  CAPTURE(family, name);
  for (const uint64_t step : {3, 4}) {  // checkpoint.keep is 2
    const std::string path = step_path(directory / "saved", step), model = path + "/huggingface";
    const NamedTensors exported = read_checkpoint(model);
    CHECK(exported.format == "huggingface");
    for (const NamedTensor& tensor : exported.tensors) CHECK(tensor.info.dtype == dtype);
    CHECK(weights_in(model, dtype) == weights_in(path, dtype));
  }
  CHECK(complete_steps(directory / "saved") == std::vector<uint64_t>{3, 4});
  for (const auto& entry : fs::directory_iterator(directory / "saved"))
    CHECK(entry.path().filename().string().find("partial") == std::string::npos);
}

TEST_CASE("an export has the same bytes after a save that training waits for or not", "[train]") {
  const std::string strategy = GENERATE("ddp", "zero3");
  const TemporaryDirectory waited, meanwhile;
  const Settings sets = {"checkpoint.export=bf16", "parallel.strategy=" + strategy};
  run_on_ranks(config_of("llama-tiny", waited.path(), sets), 2);
  run_on_ranks(config_of("llama-tiny", meanwhile.path(), sets + Settings{"checkpoint.async=true"}),
               2);
  const std::string file = "/saved/step-00000004/huggingface/model.safetensors";
  CHECK(read_text(waited.path() + file, UINT64_MAX) ==
        read_text(meanwhile.path() + file, UINT64_MAX));
}

TEST_CASE("an export takes the files of the tokenizer from where the run began", "[train]") {
  const TemporaryDirectory directory;
  run_on_ranks(config_of("llama-tiny", directory / "first", {"checkpoint.export=fp32"}), 1);
  const std::string origin = directory / "first/saved/step-00000004/huggingface";
  write_text(origin + "/tokenizer.json", "{}");
  run_on_ranks(config_of("llama-tiny", directory / "second",
                         {"checkpoint.export=bf16", "model.init=" + origin}),
               1);
  CHECK(read_text(directory / "second/saved/step-00000004/huggingface/tokenizer.json", 9) == "{}");
}

TEST_CASE("an export that is not to end leaves its checkpoint, and no half of itself", "[train]") {
  const TemporaryDirectory directory;
  run_on_ranks(config_of("gpt2-tiny", directory.path(), {}), 1);
  std::stop_source stopped;
  stopped.request_stop();
  const std::string step = directory / "saved/step-00000004";
  CHECK_THROWS_WITH(export_weights(step, {}, stopped.get_token()), Catch::Contains("has ended"));
  CHECK_FALSE(fs::exists(step + "/huggingface"));
  CHECK_FALSE(fs::exists(step + "/.partial-huggingface"));
  CHECK_NOTHROW(Checkpoint::open(step).verify());
}

}  // namespace gxp
