#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lib/base/text/joined.h"
#include "lib/tools/imports/run_file.h"

namespace gxp {
namespace {

SourceTree to_tree(const Value& value) {
  return std::visit([](const auto& held) { return SourceTree(held); }, value);
}

std::string settings_in_words(const std::vector<ImportedSetting>& settings) {
  std::vector<std::string> words;
  for (const auto& [setting, value] : settings)
    words.push_back(fmt::format("{} = {}", setting, to_toml(value)));
  return joined(words, ", ");
}

SourceTree to_tree(const ImportedKey& key) {
  SourceTree tree = {{"key", key.key}};
  if (!key.key.starts_with("(default)") && key.verdict != Verdict::kWarning)
    tree["value"] = key.value;
  tree["verdict"] = kVerdictNames[size_t(key.verdict)];
  if (key.resolved) tree["resolved"] = *key.resolved;
  for (const auto& [setting, value] : key.settings) tree["gxp"][setting] = to_tree(value);
  if (!key.note.empty()) tree["note"] = key.note;
  return tree;
}

SourceTree to_tree(const ImportedBatch& batch) {
  SourceTree tree = SourceTree::object();
  if (batch.ranks) tree["world"] = *batch.ranks;
  if (!batch.error.empty()) {
    tree["error"] = batch.error;
    for (const BatchTriple& triple : batch.nearest) {
      tree["nearest_global"].push_back(triple.global);
      tree["nearest"].push_back(
          {{"micro", triple.micro}, {"grad_accum", triple.grad_accum}, {"global", triple.global}});
    }
    return tree;
  }
  tree["micro"] = batch.sizes.micro;
  if (batch.sequence) tree["sequence"] = *batch.sequence;
  tree["grad_accum"] = batch.sizes.grad_accum;
  const double tokens = double(batch.sizes.global) * double(batch.sequence.value_or(1));
  if (batch.sizes.global > 0 && batch.sequence && tokens < 9e18)
    tree["global_tokens"] = batch.sizes.global * *batch.sequence;
  else if (batch.sizes.global > 0 && !batch.sequence)
    tree["global"] = batch.sizes.global;
  return tree;
}

void add_batch(const ImportResult& result, Report& report) {
  if (!result.batch) return;
  const ImportedBatch& batch = *result.batch;
  if (batch.ranks) report.facts.push_back({{"ranks"}, *batch.ranks});
  if (!batch.error.empty()) {
    Table& table = report.add_table(
        "nearest",
        {{"global", "rows of a step"}, {"micro", "micro-batch"}, {"grad_accum", "accumulation"}});
    table.when_empty = "No sizes of the batch are near.";
    for (const BatchTriple& triple : batch.nearest)
      table.add_row(triple.global, triple.micro, triple.grad_accum);
  } else if (batch.sizes.global > 0) {
    report.facts.push_back({{"global", "rows of a step"}, batch.sizes.global});
  }
}

}  // namespace

Report to_report(const ImportResult& result) {
  Report report{.schema = "gxp.import/1"};
  if (result.kind)
    report.facts.push_back({{"source"}, std::string(kSourceNames[size_t(*result.kind)])});
  Table& keys =
      report.add_table("keys", {{"verdict"}, {"key"}, {"value"}, {"gxp", "in gxp"}, {"note"}});
  keys.when_empty = "No keys.";
  for (const ImportedKey& key : result.keys) {
    const std::string value = to_line(key.value);
    keys.add_row(kVerdictNames[size_t(key.verdict)], key.key,
                 key.resolved ? fmt::format("{} = {}", value, to_line(*key.resolved)) : value,
                 settings_in_words(key.settings), key.note);
  }
  Table& defaults = report.add_table("source_defaults", {{"setting"}, {"value"}});
  defaults.when_empty = "No other defaults.";
  for (const SourceDefault& preset : result.defaults)
    defaults.add_row(preset.setting, preset.value ? to_toml(*preset.value) : preset.words);
  add_batch(result, report);
  return report;
}

std::string to_import_json(const ImportResult& result, const std::string& run_file,
                           const std::vector<std::string>& problems) {
  SourceTree tree = {{"schema", "gxp.import/1"}, {"file", result.path}};
  if (result.kind) tree["source"] = kSourceNames[size_t(*result.kind)];
  tree["imports"] = result.imports();
  tree["errors"] = result.errors;
  tree["keys"] = SourceTree::array();
  tree["resolved_auto"] = SourceTree::object();
  for (const ImportedKey& key : result.keys) {
    tree["keys"].push_back(to_tree(key));
    if (key.resolved) tree["resolved_auto"][key.key] = *key.resolved;
  }
  if (result.batch) tree["batch"] = to_tree(*result.batch);
  tree["settings"] = SourceTree::object();
  for (const auto& [setting, value] : result.settings) tree["settings"][setting] = to_tree(value);
  tree["source_defaults"] = SourceTree::object();
  for (const SourceDefault& preset : result.defaults)
    tree["source_defaults"][preset.setting] =
        preset.value && preset.words.empty() ? to_tree(*preset.value) : SourceTree(preset.words);
  if (result.imports()) {
    tree["run_file"] = run_file;
    tree["remaining"] = problems;
  }
  return tree.dump(2, ' ', false, SourceTree::error_handler_t::replace) + "\n";
}

}  // namespace gxp
