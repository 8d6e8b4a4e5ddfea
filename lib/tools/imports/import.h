// Configurations of other launchers as settings of gxp: DeepSpeed JSON, accelerate YAML, torchtitan
// TOML, Hugging Face TrainingArguments JSON, and llm.c's command line.
//
//   const ImportResult result = import_file({.path = "ds_config.json", .ranks = 8});
//   if (result.imports()) write(to_run_file(result, {}));
//
// Every key of the file has a verdict with a reason, so nothing is dropped silently. A key that the
// file lacks has the default of its program: where that differs from gxp's, the setting is written,
// too. The tables of keys are one file a program: deepspeed_keys.cc, accelerate_keys.cc, ...
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/config/toml_reader.h"
#include "lib/tools/imports/batch.h"
#include "lib/tools/imports/source.h"

namespace gxp {

enum class Verdict {
  kMapped,   // says the same in gxp
  kChanged,  // what gxp does differs: the note says how
  kIgnored,  // has no effect here: the note says why
  kRefused,  // gxp cannot do that
  kUnknown,  // no key of the program that this version of gxp knows
  kWarning,  // not a key of the file: the program itself warns of it
};
// In the order of the enumerators.
inline constexpr std::array<std::string_view, 6> kVerdictNames = {"mapped",  "changed", "ignored",
                                                                  "refused", "unknown", "warn"};

// By "section.key"; an option of gxp train by its name, "--nproc".
using ImportedSetting = std::pair<std::string, Value>;

struct ImportedKey {
  std::string key;
  SourceTree value = {};  // as the file has it
  Verdict verdict = Verdict::kIgnored;
  std::optional<SourceTree> resolved = {};  // what "auto" becomes
  std::vector<ImportedSetting> settings = {};
  std::string note = {};
};

struct SourceDefault {
  std::string setting;
  std::optional<Value> value;  // nothing: only the data decides it
  std::string words;           // in its place, or in addition; ""
};

struct ImportRequest {
  std::string path;
  int ranks = 0;                                   // of all hosts; 0: not known
  std::map<std::string, std::string> arguments{};  // of the training program, for "auto"
  std::optional<int64_t> hidden_size{};            // of the model, for "auto"
  bool has_schedule = false;                       // the training program has one of its own
};

struct ImportResult {
  std::string path;
  std::optional<SourceKind> kind = {};  // nothing: not recognised
  std::vector<ImportedKey> keys = {};
  std::optional<ImportedBatch> batch = {};
  std::vector<ImportedSetting> settings = {};  // in the order in which they were found
  std::vector<SourceDefault> defaults = {};
  std::vector<std::string> errors = {};

  [[nodiscard]] bool imports() const { return errors.empty(); }
  // Nothing if the file does not decide it, by a key or a default.
  [[nodiscard]] const Value* find(std::string_view setting) const;
};

// A file that a key names is imported, too. kIo, kCorrupt: `path` cannot be read. kConfig: an
// argument is none of import_arguments(), or is no number where one is needed. What is wrong with the
// content of a file is in `errors`.
ImportResult import_file(const ImportRequest& request);

// What "auto" is resolved from: names of transformers' TrainingArguments, hidden_size and
// mixed_precision.
std::vector<std::string> import_arguments();

}  // namespace gxp
