#include "tests/cmd/golden_run.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "lib/base/error.h"
#include "tests/train/golden_model.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Long and short runs have the learning rates of the folder's own.
std::string run_file(const json& spec, const std::string& folder, int micro_batch) {
  const json& data = spec["data"];
  const json& optim = spec["optimizer"];
  std::string text;
  const auto section = [&](const char* name) { text += fmt::format("[{}]\n", name); };
  const auto set = [&](const std::string& key, const json& value) {
    text += fmt::format("{} = {}\n", key, value.dump());
  };
  section("model");
  for (const auto& [key, value] : golden_model(spec)) set(key, value);
  set("init", folder + "/init.safetensors");
  section("data");
  set("train", {folder + "/tokens.i32"});
  set("sequence", data["seq"]);
  set("order", "sequential");
  section("train");
  set("steps", data["steps"]);
  set("micro_batch", micro_batch);
  set("grad_accum", data["accum"]);
  set("threads", 1);
  section("optim");
  set("lr", optim["lr"]);
  set("weight_decay", optim["weight_decay"]);
  set("clip", optim["grad_clip"]);
  section("lr_schedule");
  set("name", optim["schedule"]);
  set("warmup_steps", optim["warmup_steps"]);
  set("total_steps", optim["total_steps"].get<int>() - 1);  // see tests/data/train/README.md
  set("min_lr", optim["min_lr"]);
  return text;
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void make_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

GoldenRun::GoldenRun(const std::string& folder, int micro_batch)
    : folder_(std::string(GXP_TEST_DATA) + "/train/" + folder) {
  const json spec = json::parse(read_file(golden("spec.json")));
  make_file(path("run.toml"), run_file(spec, folder_, micro_batch) +
                                  fmt::format("[checkpoint]\ndir = \"{}\"\n", path("run/ckpt")));
}

std::string GoldenRun::golden(const std::string& file) const { return folder_ + "/" + file; }

std::vector<std::string> GoldenRun::train(const std::vector<std::string>& more) const {
  return Arguments{"train", path("run.toml"), "--metrics", path("metrics.jsonl")} + more;
}

std::vector<json> GoldenRun::metrics() const {
  std::vector<json> lines;
  std::istringstream text(read_file(path("metrics.jsonl")));
  for (std::string line; std::getline(text, line);) {
    const json object = json::parse(line, nullptr, false);
    if (object.is_object()) lines.push_back(object);
  }
  return lines;
}

std::string GoldenRun::weights() const {
  const std::string file = path("weights.safetensors");
  fs::remove(file);
  const Outcome outcome = run_gxp({"convert-ckpt", path("run/ckpt"), file, "--to", "safetensors"});
  if (outcome.code != 0) fail(ErrorKind::kInternal, "convert: {}", outcome.err);
  return read_file(file);
}

}  // namespace gxp
