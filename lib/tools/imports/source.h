// A configuration of another launcher as one tree, whatever its syntax, and as a flat list of keys.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

// Objects keep the order of the file.
using SourceTree = nlohmann::ordered_json;

enum class SourceKind { kDeepSpeed, kAccelerate, kTorchtitan, kTrainer, kLlmc };
// In the order of the enumerators.
inline constexpr std::array<std::string_view, 5> kSourceNames = {
    "DeepSpeed JSON", "accelerate YAML", "torchtitan TOML", "TrainingArguments JSON",
    "llm.c command line"};

// A value that is no object, or an empty object.
struct SourceKey {
  std::string name;  // "zero_optimization.stage"; "-b" of a command line
  SourceTree value;
};

struct ImportedFile {
  std::string path = {};
  std::optional<SourceKind> kind = {};  // nothing: none of these
  std::vector<SourceKey> keys = {};
  std::vector<std::string> flaws = {};  // why it is not all read, if it is not
};

// The leaves of `tree` with the names of the objects around them. A name that holds a '.' is quoted,
// so that it is not taken for two.
std::vector<SourceKey> flatten(const SourceTree& tree);

// Reads the file and recognises its kind by its syntax and by the keys that each program knows; where
// the syntax is broken, by that alone. What is wrong with its content is in `flaws`: a syntax error with its line, a key that occurs twice, or
// that it is none of these kinds. kIo, kCorrupt: as read_text_file(), for up to 1 MiB.
ImportedFile read_source(const std::string& path);

// The same over the text of a file; `path` is for messages.
ImportedFile parse_source(const std::string& text, const std::string& path);

// Its value in one line, as JSON writes it.
std::string to_line(const SourceTree& value);

}  // namespace gxp
