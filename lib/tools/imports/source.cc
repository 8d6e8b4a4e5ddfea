#include "lib/tools/imports/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/utf8.h"
#include "lib/base/text_file.h"
#include "lib/config/settings.h"
#include "lib/tools/imports/programs.h"
#include "lib/tools/imports/syntax.h"

namespace gxp {
namespace {

constexpr size_t kMaxSourceBytes = 1u << 20;

void add_leaves(const std::string& prefix, const SourceTree& tree, std::vector<SourceKey>& keys) {
  for (const auto& [key, value] : tree.items()) {
    const bool is_path = key.find('.') != std::string::npos;
    const std::string name = prefix + (is_path ? fmt::format("\"{}\"", key) : key);
    if (value.is_object() && !value.empty())
      add_leaves(name + ".", value, keys);
    else
      keys.push_back({name, value});
  }
}

enum class Syntax { kHjson, kYaml, kToml, kCommand };

bool is_toml_line(std::string_view line) {
  line = trimmed(line);
  if (line.starts_with('[')) return true;
  const size_t word = std::min(line.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."),
                               line.size());
  return word > 0 && trimmed(line.substr(word)).starts_with('=');
}

// Of the first line that is neither empty nor a comment.
std::string_view first_line(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty() && !line.starts_with('#') && !line.starts_with("//")) return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return "";
}

Syntax syntax_of(std::string_view text) {
  const std::string_view line = first_line(text);
  if (line.starts_with('{') || line.starts_with("/*")) return Syntax::kHjson;
  const bool is_flag = line.size() > 1 && line[0] == '-' && line[1] != '-' && line[1] != ' ';
  const bool names_program = line.find("train_gpt2") != std::string_view::npos ||
                             line.find("train_llama3") != std::string_view::npos;
  if (is_flag || (names_program && line.find(": ") == std::string_view::npos))
    return Syntax::kCommand;
  return is_toml_line(line) ? Syntax::kToml : Syntax::kYaml;
}

bool may_be(SourceKind kind, Syntax syntax) {
  if (syntax == Syntax::kToml) return kind == SourceKind::kTorchtitan;
  return kind == SourceKind::kDeepSpeed || kind == SourceKind::kAccelerate ||
         kind == SourceKind::kTrainer;
}

// Of a file that cannot be parsed: the program that most files of this syntax are for.
SourceKind likeliest_kind(Syntax syntax) {
  if (syntax == Syntax::kToml) return SourceKind::kTorchtitan;
  if (syntax == Syntax::kCommand) return SourceKind::kLlmc;
  return syntax == Syntax::kYaml ? SourceKind::kAccelerate : SourceKind::kDeepSpeed;
}

// How many of the tree's outermost keys a program knows.
size_t known_keys(const SourceTree& tree, const SourceProgram& program) {
  size_t known = 0;
  for (const auto& entry : tree.items()) {
    known += std::ranges::any_of(program.rules(), [&](const KeyRule& rule) {
      return rule.key.substr(0, rule.key.find('.')) == entry.key();
    });
  }
  return known;
}

std::optional<SourceKind> kind_of(const SourceTree& tree, Syntax syntax) {
  std::optional<SourceKind> best;
  size_t most = 0;
  for (const SourceProgram& program : source_programs()) {
    if (!may_be(program.kind, syntax)) continue;
    const size_t known = known_keys(tree, program);
    if (known > most) best = program.kind;
    most = std::max(most, known);
  }
  return best;
}

// A command line's flags, each with its value. What comes before the program is a launcher's.
void read_flags(const SourceTree& words, ImportedFile& file) {
  size_t at = 0;
  while (at < words.size() && words[at].get<std::string>().find("train_") == std::string::npos)
    ++at;
  const bool has_program = at < words.size();
  for (size_t i = 0; has_program && i < at; ++i) {
    const std::string word = words[i];
    const bool counts = (word == "-np" || word == "-n") && i + 1 < at;
    file.keys.push_back({counts ? "-np" : "(launcher)", counts ? words[i + 1] : words[i]});
    if (counts) ++i;
  }
  for (size_t i = has_program ? at + 1 : 0; i < words.size(); i += 2) {
    const std::string flag = words[i].get<std::string>();
    if (std::ranges::find(file.keys, flag, &SourceKey::name) != file.keys.end())
      file.flaws.push_back(fmt::format("{}: occurs twice", flag));
    if (i + 1 < words.size())
      file.keys.push_back({flag, words[i + 1]});
    else
      file.flaws.push_back(fmt::format("{}: a flag without a value", flag));
  }
}

SourceTree parse(const std::string& text, const std::string& path, Syntax syntax) {
  switch (syntax) {
    case Syntax::kHjson:
      return parse_hjson(text, path);
    case Syntax::kToml:
      return parse_toml_tree(text, path);
    case Syntax::kCommand:
      return parse_command_words(text, path);
    case Syntax::kYaml:
      break;
  }
  if (const std::string restored = accelerate::restored_lines(text); !restored.empty())
    fail(ErrorKind::kConfig, "{}: the line breaks are lost; write:\n{}", path, restored);
  return parse_yaml_tree(text, path);
}

// Why a text of none of the kinds is none.
std::string describe_stranger(const SourceTree& tree, const std::string& path) {
  const std::vector<std::string> sections = section_names();
  const bool is_run_file =
      tree.is_object() && std::ranges::any_of(tree.items(), [&](const auto& entry) {
        return entry.value().is_object() &&
               std::ranges::find(sections, entry.key()) != sections.end();
      });
  if (is_run_file) return fmt::format("{} is a run file of gxp: gxp train {}", path, path);
  return fmt::format("{} is none of: {}", path, joined(kSourceNames, ", "));
}

}  // namespace

std::vector<SourceKey> flatten(const SourceTree& tree) {
  std::vector<SourceKey> keys;
  add_leaves("", tree, keys);
  return keys;
}

std::string to_line(const SourceTree& value) {
  return value.dump(-1, ' ', false, SourceTree::error_handler_t::replace);
}

ImportedFile parse_source(const std::string& text, const std::string& path) {
  ImportedFile file{.path = path};
  const bool is_binary = text.starts_with('\x80') || text.starts_with("PK\x03\x04") ||
                         text.find('\0') != std::string::npos;
  for (size_t at = 0; !is_binary && at < text.size();) {
    const size_t length = utf8_length(std::string_view(text).substr(at));
    if (length == 0) {
      file.flaws.push_back(fmt::format("{}: byte {} is not UTF-8", path, at));
      return file;
    }
    at += length;
  }
  if (is_binary) {
    file.flaws.push_back(fmt::format(
        "{} is not text; of a training_args.bin, which is a pickle, write args.to_json_string()",
        path));
    return file;
  }
  const Syntax syntax = syntax_of(text);
  file.kind = likeliest_kind(syntax);
  try {
    const SourceTree tree = parse(text, path, syntax);
    if (syntax == Syntax::kCommand) {
      read_flags(tree["words"], file);
      return file;
    }
    file.kind = tree.is_object() ? kind_of(tree, syntax) : std::nullopt;
    if (file.kind)
      file.keys = flatten(tree);
    else
      file.flaws.push_back(describe_stranger(tree, path));
  } catch (const Error& error) {
    file.flaws.emplace_back(error.what());
  }
  return file;
}

ImportedFile read_source(const std::string& path) {
  return parse_source(to_utf8(read_text_file(path, kMaxSourceBytes, "configuration")), path);
}

}  // namespace gxp
