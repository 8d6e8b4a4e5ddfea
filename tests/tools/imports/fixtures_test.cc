// Every file of tests/data/configs against what its expected.json says (README.md there).
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "lib/base/text_file.h"
#include "lib/tools/imports/run_file.h"
#include "tests/catch.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

struct ConfigSample {
  fs::path file;
  SourceTree expected;
};

std::vector<ConfigSample> config_samples() {
  std::vector<ConfigSample> samples;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(GXP_TEST_DATA) / "configs")) {
    const std::string name = entry.path().filename().string();
    const size_t end = name.find(".expected.json");
    if (end == std::string::npos) continue;
    const SourceTree expected = SourceTree::parse(read_text_file(entry.path().string(), 1 << 20));
    samples.push_back({entry.path().parent_path() / expected["file"].get<std::string>(), expected});
  }
  std::ranges::sort(samples, {}, &ConfigSample::file);
  return samples;
}

ImportRequest request_of(const ConfigSample& sample) {
  const SourceTree context = sample.expected.value("context", SourceTree::object());
  ImportRequest request{.path = sample.file.string(), .ranks = context.value("world", 0)};
  if (context.contains("model")) request.hidden_size = context["model"]["hidden_size"].get<int>();
  if (!context.contains("trainer")) return request;
  const std::vector<std::string> known = import_arguments();
  for (const auto& [name, value] : context["trainer"].items()) {
    if (std::ranges::find(known, name) != known.end()) request.arguments[name] = to_line(value);
  }
  return request;
}

SourceTree import_sample(const ConfigSample& sample) {
  return SourceTree::parse(to_import_json(import_file(request_of(sample)), "", {}));
}

// Reason given, these two may trade places.
bool is_same_verdict(const SourceTree& ours, const SourceTree& theirs) {
  if (ours["verdict"] == theirs["verdict"]) return true;
  const std::string pair =
      ours["verdict"].get<std::string>() + theirs["verdict"].get<std::string>();
  return (pair == "ignoredchanged" || pair == "changedignored") && ours.contains("note");
}

SourceTree find_key(const SourceTree& keys, const SourceTree& name) {
  for (const SourceTree& key : keys) {
    if (key["key"] == name) return key;
  }
  return SourceTree{{"verdict", "missing"}};
}

// The members of `wanted` that `got` lacks or has with another value.
SourceTree missing_of(const SourceTree& wanted, const SourceTree& got) {
  SourceTree missing = SourceTree::object();
  for (const auto& [name, value] : wanted.items()) {
    if (!got.contains(name) || got[name] != value) missing[name] = value;
  }
  return missing;
}

bool names_another_file(const SourceTree& expected) {
  return std::ranges::any_of(
      expected.value("keys", SourceTree::array()), [](const SourceTree& key) {
        return key["key"] == "deepspeed" || key["key"] == "deepspeed_config.deepspeed_config_file";
      });
}

}  // namespace

TEST_CASE("every key of a configuration has the verdict that is expected of it", "[imports]") {
  const std::vector<ConfigSample> samples = config_samples();
  REQUIRE(samples.size() > 70);
  for (const ConfigSample& sample : samples) {
    const SourceTree got = import_sample(sample);
    const SourceTree keys = sample.expected.value("keys", SourceTree::array());
    CAPTURE(sample.file, got["errors"].dump());
    CHECK(got["source"] == sample.expected["source"]);
    CHECK(got["imports"] == sample.expected["imports"]);
    for (const SourceTree& key : keys) {
      const SourceTree ours = find_key(got["keys"], key["key"]);
      CAPTURE(key.dump(), ours.dump());
      CHECK(is_same_verdict(ours, key));
      CHECK(ours.value("gxp", SourceTree()) == key.value("gxp", SourceTree()));
      CHECK(ours.value("resolved", SourceTree()) == key.value("resolved", SourceTree()));
    }
    if (!names_another_file(sample.expected)) CHECK(got["keys"].size() == keys.size());
  }
}

TEST_CASE("an import gives the settings, the defaults and the batch that are expected",
          "[imports]") {
  for (const ConfigSample& sample : config_samples()) {
    const SourceTree got = import_sample(sample);
    const SourceTree& expected = sample.expected;
    CAPTURE(sample.file, got["settings"].dump(), got["source_defaults"].dump());
    CHECK(missing_of(expected["settings"], got["settings"]).dump() == "{}");
    if (!names_another_file(expected))
      CHECK(missing_of(got["settings"], expected["settings"]).dump() == "{}");
    SourceTree written = got["source_defaults"];
    written.update(got["settings"]);
    SourceTree presets = expected.value("source_defaults", SourceTree::object());
    // What is expected is of this file alone; but if the DeepSpeed file that it names has a scheduler,
    // transformers (integrations/deepspeed.py, deepspeed_optim_sched()) never builds the Trainer's.
    if (names_another_file(expected) && got["settings"].contains("lr_schedule.name"))
      presets.erase("lr_schedule.name");
    CHECK(missing_of(presets, written).dump() == "{}");
    if (expected.contains("batch"))
      CHECK(missing_of(expected["batch"], got["batch"]).dump() == "{}");
  }
}

TEST_CASE("a refused key is named by an error, and nothing else is one", "[imports]") {
  for (const ConfigSample& sample : config_samples()) {
    const SourceTree got = import_sample(sample);
    CAPTURE(sample.file, got["errors"].dump());
    for (const SourceTree& key : got["keys"]) {
      if (key["verdict"] != "refused") continue;
      const std::string name = key["key"].get<std::string>();
      CHECK(std::ranges::any_of(got["errors"], [&](const SourceTree& error) {
        return error.get<std::string>().starts_with(name);
      }));
      CHECK(key.contains("note"));
    }
    if (sample.expected["imports"] == false) CHECK_FALSE(got["errors"].empty());
  }
}

TEST_CASE("the run file of an import has each setting with its origin", "[imports]") {
  for (const ConfigSample& sample : config_samples()) {
    const ImportResult result = import_file(request_of(sample));
    if (!result.imports()) continue;
    const std::string run_file = to_run_file(result, {});
    CAPTURE(sample.file, run_file);
    const TomlDocument document = parse_toml(run_file);
    CHECK(document.syntax_error.empty());
    for (const auto& [name, value] : result.settings) {
      if (name.starts_with("--")) continue;
      const auto entry = std::ranges::find_if(document.entries, [&](const TomlEntry& each) {
        return each.section + "." + each.key == name;
      });
      REQUIRE(entry != document.entries.end());
      CHECK(entry->value == value);
    }
  }
}

}  // namespace gxp
