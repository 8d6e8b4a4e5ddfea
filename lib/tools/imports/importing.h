// One import at work: what the rows of a program's table of keys (key_rules.h) read and write.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tools/imports/import.h"

namespace gxp {

struct KeyRule;

class Importing {
 public:
  Importing(const ImportRequest& request, ImportedFile file);

  // Judges each key of the file by its row, in the order of the file. A key without a row is
  // `unknown` to the program: unless the program ignores such keys, too, that is an error.
  void judge(std::span<const KeyRule> rules, bool ignores_unknown);
  ImportResult take() &&;
  // Reads a key of an older name by its present one; before judge().
  void rename(std::string_view before, const std::string& now,
              std::optional<SourceTree> value = {});
  // A judged key by the name that the file has for it; after judge().
  void report_as(std::string_view now, std::string_view before);
  // "; did you mean 'overlap_comm'?", of the keys in the judged key's block; or "".
  [[nodiscard]] std::string nearest_key() const;

  // The key that is judged. Its value is the resolved one if it was "auto".
  [[nodiscard]] const std::string& name() const { return result_.keys.back().key; }
  [[nodiscard]] const SourceTree& value() const;
  [[nodiscard]] bool is_auto() const { return result_.keys.back().value == "auto"; }
  // Whether the key is true, of one that is true or false. If it is not, the verdict is given: ignored
  // for false, refused for what is neither.
  [[nodiscard]] bool is_switched_on();
  // Another key's value, resolved likewise; nothing if the file lacks it or it is null.
  [[nodiscard]] const SourceTree* find(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  // Whether it is true, in one of the ways in which the programs write that.
  [[nodiscard]] bool is_on(std::string_view key) const;
  [[nodiscard]] std::string word(std::string_view key) const;  // lower case; "" without the key
  [[nodiscard]] std::optional<double> number(std::string_view key) const;

  // The verdict on the key; `note` is of the row or the reason.
  void map(std::vector<ImportedSetting> settings, std::string_view note = "");
  void change(std::vector<ImportedSetting> settings, std::string_view note);
  void ignore(std::string_view note);
  void refuse(std::string_view note);
  void unknown(std::string_view note, bool is_error);
  // map(), with the key's value in the type of the setting; refuse() if it has none.
  void take_value(std::string_view setting, std::string_view note = "", bool changed = false);

  // A row that is no key of the file: "(default) ...".
  void add(ImportedKey key);
  void error(std::string text) { result_.errors.push_back(std::move(text)); }
  void set(std::string_view setting, Value value);
  // Forgets the setting, which another file decides.
  void yield(std::string_view setting);
  // Unless the file has decided the setting.
  void set_default(std::string_view setting, std::optional<Value> value, std::string words = "");
  // The rows of a micro-batch and the accumulation become settings, or the reason why not an error.
  void set_batch(ImportedBatch batch);
  // For the report alone.
  void describe_batch(ImportedBatch batch) { result_.batch = std::move(batch); }
  // The DeepSpeed configuration of another file or block, merged: its keys are listed with its path in
  // front. A setting that both decide must be the same.
  void import_deepspeed_file(ImportedFile inner, const ImportRequest& request);
  // The keys of a block with a DeepSpeed JSON, which are no longer judged here; before judge().
  ImportedFile take_block(const std::string& block);
  // A path in the file is relative to the file, or if nothing is there to the working directory.
  [[nodiscard]] std::string path_beside(const std::string& path) const;
  // More that is to be said of a judged key: "no learning_rate is given ...".
  void assume(std::string_view name, std::string_view note);

  [[nodiscard]] const ImportResult& result() const { return result_; }
  [[nodiscard]] ImportRequest& request() { return request_; }
  // An argument of the training program.
  [[nodiscard]] std::optional<std::string> argument(const std::string& name) const;
  // What "auto" becomes for a key; nothing: nobody resolves it.
  void resolve_key(std::string_view key, SourceTree value);
  // The model's width, for "auto".
  [[nodiscard]] std::optional<int64_t> model_width() const;
  void resolve_auto(std::optional<SourceTree> (*resolve)(const Importing&, const SourceKey&));

 private:
  void merge(ImportResult nested, const std::string& prefix);
  void decide(Verdict verdict, std::vector<ImportedSetting> settings, std::string_view note);

  ImportRequest request_;
  ImportedFile file_;
  std::vector<std::optional<SourceTree>> resolved_;  // by key
  std::span<const KeyRule> rules_;
  std::vector<std::pair<std::string, std::string>> renamed_;  // before, now
  size_t at_ = 0;                                             // the key that is judged
  ImportResult result_;
};

// A number of the value, also of a text that is one; nothing if it is none.
std::optional<double> to_number(const SourceTree& value);
// true, 1, "true", "yes", "on"; false, 0, null, "", "no", "none", "false", "off", [], {}.
bool is_true(const SourceTree& value);
bool is_false(const SourceTree& value);
// A text as it is, anything else as JSON writes it; and in lower case.
std::string to_words(const SourceTree& value);
std::string to_lower_words(const SourceTree& value);
// The value as the setting's type, or the reason why it has none.
struct ConvertedValue {
  std::optional<Value> value;
  std::string problem;
};
ConvertedValue convert_to(std::string_view setting, const SourceTree& value);

}  // namespace gxp
