// gxp convert-ckpt as a program: its exit codes, and what its options print and write.
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/ckpt/format.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"
#include "tests/cmd/golden_run.h"
#include "tests/cmd/run_gxp.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

const std::string kModel = GXP_TEST_DATA "/ckpt/hf_gpt2";

void check_code(const std::vector<std::string>& arguments, int code, const std::string& words) {
  const Arguments all = Arguments{"convert-ckpt"} + arguments;
  const Outcome outcome = run_gxp(all);
  CAPTURE(arguments, outcome.err);
  CHECK(outcome.code == code);
  CHECK_THAT(outcome.err, Contains(words));
}

}  // namespace

TEST_CASE("a path that the system refuses ends convert-ckpt with code 4", "[cmd]") {
  const TemporaryDirectory dir;
  fs::create_symlink("loop", dir / "loop");
  const std::string endless = dir / std::string(300, 'x');
  check_code({dir / "loop", "--inspect"}, 4, "symbolic links");
  check_code({endless, "--inspect"}, 4, "too long");
  check_code({kModel, dir / "loop/out", "--to", "gxp"}, 4, "symbolic links");
  check_code({kModel, endless, "--to", "gxp", "--force"}, 4, "too long");
}

TEST_CASE("convert-ckpt --force keeps a directory with notes in it, with code 2", "[cmd]") {
  const TemporaryDirectory dir;
  check_code({kModel, dir / "out", "--to", "gxp"}, 0, "");
  write_bytes(dir / "out/notes.txt", "mine");
  check_code({kModel, dir / "out", "--to", "safetensors", "--force"}, 2, "notes.txt");
  CHECK(read_bytes(dir / "out/notes.txt") == "mine");
  fs::remove(dir / "out/notes.txt");
  check_code({kModel, dir / "out", "--to", "safetensors", "--force"}, 0, "");
}

TEST_CASE("convert-ckpt --diff ends with 0 for equal tensors and with 1 for others", "[cmd]") {
  const TemporaryDirectory dir;
  check_code({kModel, dir / "gxp", "--to", "gxp"}, 0, "");
  check_code({"--diff", kModel, dir / "gxp"}, 0, "");
  check_code({kModel, dir / "half.safetensors", "--to", "safetensors", "--dtype", "f16"}, 0, "");
  const Outcome outcome = run_gxp(
      {"convert-ckpt", dir / "gxp", dir / "half.safetensors", "--diff", "--format", "json"});
  CHECK(outcome.code == 1);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json["differing"] == 28);
  CHECK(json["equal"] == 0);
  const auto& row = json["tensors"][0];
  CHECK(row["result"] == "dtypes differ");
  CHECK(row["second_dtype"] == "F16");
  CHECK(row["max_absolute"].get<double>() > 0);
  CHECK(row["max_relative"].get<double>() < 1.0 / 1024);
  check_code({"--diff", kModel, dir / "none"}, 4, "No such file");
}

TEST_CASE("convert-ckpt --dtype tells which numbers have become infinite", "[cmd]") {
  const TemporaryDirectory dir;
  write_checkpoint({.tensors = {counting_tensor("a", {70000})}}, find_format("gxp"), dir / "a", {});
  check_code({dir / "a", dir / "b", "--to", "gxp", "--dtype", "f16"}, 0,
             "4480 elements exceed the largest f16");
  const Outcome outcome = run_gxp({"convert-ckpt", dir / "b", "--inspect", "--format", "json"});
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json["total_bytes"] == 140000);
  CHECK(json["parameters"] == 70000);
  CHECK(json["optimizer_state"] == "none");
  CHECK(json["tensors"][0]["dtype"] == "F16");
}

TEST_CASE("convert-ckpt --dtype does not round the scales of quantized weights", "[cmd]") {
  const TemporaryDirectory dir;
  NamedTensors model = read_checkpoint(kModel);
  nlohmann::json config = nlohmann::json::parse(model.metadata.at("huggingface.config"));
  config["quantization_config"] = {{"quant_method", "fp8"}};
  model.metadata["huggingface.config"] = config.dump();
  model.config.clear();
  write_checkpoint(model, find_format("huggingface"), dir / "fp8", {});
  check_code({dir / "fp8", dir / "same", "--to", "huggingface"}, 0, "");
  check_code({dir / "fp8", dir / "out", "--to", "huggingface", "--dtype", "bf16"}, 2,
             "are quantized (quantization_config is {");
}

TEST_CASE("convert-ckpt --dry-run tells the files and writes none", "[cmd]") {
  const TemporaryDirectory dir;
  const Outcome outcome = run_gxp({"convert-ckpt", kModel, dir / "out", "--to", "huggingface",
                                   "--shards", "2", "--dry-run", "--format", "json"});
  CHECK(outcome.code == 0);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json["files"].size() == 5);
  CHECK(json["files"][0]["file"] == "model-00001-of-00002.safetensors");
  CHECK(json["planned_bytes"].get<int64_t>() > 4 * 16872);
  CHECK(list(dir.path()).empty());
}

TEST_CASE("convert-ckpt converts what lies in each kind of checkpoint", "[cmd]") {
  const TemporaryDirectory dir;
  const std::string source =
      GENERATE("dcp_fsdp2", "dcp_hf_sharded", "ds_zero1_fp32", "ds_zero2_bf16", "ds_zero3_bf16",
               "ds_zero2_bf16_universal", "folders/trainer", "gguf/tiny.gguf", "gxp_v1", "hf_qwen2",
               "llmc_bin/gpt2_bf16.bin", "safetensors_sharded", "torch_pt/train_ckpt.pt");
  const std::string path = GXP_TEST_DATA "/ckpt/" + source;
  CAPTURE(source);
  check_code({path, dir / "out", "--to", "gxp", "--shards", "2", "--resume", "--verify"}, 0, "");
  check_code({"--diff", path, dir / "out"}, 0, "");
}

TEST_CASE("convert-ckpt --step tells a step that the source does not, and no other", "[cmd]") {
  const TemporaryDirectory dir;
  check_code({kModel, dir / "out", "--to", "gxp", "--step", "12"}, 0, "");
  CHECK(read_checkpoint(dir / "out").step == 12);
  check_code({dir / "out", dir / "more", "--to", "gxp", "--step", "12"}, 0, "");
  check_code({dir / "out", dir / "other", "--to", "gxp", "--step", "11"}, 2, "saved at step 12");
  CHECK_FALSE(fs::exists(dir / "other"));
}

TEST_CASE("a damaged checkpoint of gxp's becomes no other one", "[cmd]") {
  const TemporaryDirectory dir;
  check_code({kModel, dir / "gxp", "--to", "gxp"}, 0, "");
  const std::string shard = dir / "gxp/step-00000000/shard-00000-of-00001.bin";
  std::string bytes = read_bytes(shard);
  bytes[bytes.size() / 2] ^= 1;
  write_bytes(shard, bytes);
  check_code({dir / "gxp", dir / "out", "--to", "safetensors"}, 4, "xxh3-128 expected");
  CHECK(list(dir.path()) == std::vector<std::string>{"gxp"});
}

TEST_CASE("options of convert-ckpt that do not belong together end it with code 2", "[cmd]") {
  const auto [words, rest] = GENERATE(table<std::string, std::vector<std::string>>({
      {"give SRC and OUT", {"--diff"}},
      {"stands alone", {"out", "--diff", "--to", "gxp"}},
      {"belong together", {"out"}},
      {"nothing to do", {}},
      {"--dtype goes with --to", {"--inspect", "--dtype", "bf16"}},
      {"did you mean 'bf16'", {"out", "--to", "gxp", "--dtype", "b16"}},
      {"did you mean '--max-shard-size'", {"out", "--to", "safetensors", "--shard-size", "1MB"}},
      {"give one", {"out", "--to", "safetensors", "--shards", "2", "--max-shard-size", "1MB"}},
      {"--map goes with --to", {"--inspect", "--map", "rules.toml"}},
      {"--dry-run goes with --to", {"--inspect", "--dry-run"}},
      {"pt is always a single file", {"out", "--to", "pt", "--shards", "2"}},
      {"--resume goes with --to", {"--inspect", "--resume"}},
      {"is not a size", {"out", "--to", "safetensors", "--max-shard-size", "0"}},
  }));
  check_code(Arguments{kModel} + rest, 2, words);
}

TEST_CASE("ranks that cannot be started for want of /proc are no bug", "[cmd]") {
  const std::string isolate = ::geteuid() == 0 ? "unshare -m" : "unshare -rm";
  const auto without_proc = [&](const std::string& command) {
    return Process({"sh", "-c", isolate + " sh -c 'umount -l /proc && " + command + "'"}).end();
  };
  if (without_proc("true").code != 0) {
    WARN("skipped: this user may not unmount /proc in a mount namespace of its own");
    return;
  }
  const GoldenRun run;
  const Outcome outcome =
      without_proc(std::string(GXP_BINARY) + " train " + run.path("run.toml") + " --nproc 2");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("/proc/self/exe") && Contains("No such file"));
}

}  // namespace gxp
