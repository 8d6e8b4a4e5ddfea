#include "lib/tools/imports/run_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/error.h"
#include "lib/config/load.h"
#include "lib/config/settings.h"

namespace gxp {
namespace {

struct RunLine {
  std::string text;     // "lr = 3e-05"
  std::string comment;  // "optimizer.params.lr"
};

// A comment is one line: a path or a value may hold anything.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

// Which key has said it last, and what differs.
std::string origin_of(const ImportResult& result, const std::string& setting) {
  std::string origin = "the sizes of the batch";
  for (const ImportedKey& key : result.keys) {
    for (const auto& [name, value] : key.settings) {
      if (name != setting) continue;
      origin = key.key;
      if (key.resolved) origin += " (auto)";
      if (!key.note.empty())
        origin +=
            fmt::format(": {}{}", key.verdict == Verdict::kChanged ? "changed: " : "", key.note);
    }
  }
  return origin;
}

// As a shell reads it back: quoted unless it is plain.
std::string to_shell_word(const std::string& text) {
  const bool is_plain = std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:[]@,+=").find(c) != std::string_view::npos;
  });
  if (is_plain && !text.empty()) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

using RunLines = std::map<std::string, RunLine>;  // by "section.key"

RunLines lines_of(const ImportResult& result) {
  RunLines lines;
  const auto key_of = [](const std::string& setting) {
    return setting.substr(setting.find('.') + 1);
  };
  for (const auto& [setting, value] : result.settings)
    lines[setting] = {fmt::format("{} = {}", key_of(setting), to_toml(value)),
                      origin_of(result, setting)};
  // "DeepSpeed" of "DeepSpeed JSON".
  const std::string_view kind = kSourceNames[size_t(*result.kind)];
  const std::string_view program = kind.substr(0, kind.find(' '));
  for (const SourceDefault& preset : result.defaults) {
    if (preset.value)
      lines[preset.setting] = {
          fmt::format("{} = {}", key_of(preset.setting), to_toml(*preset.value)),
          fmt::format("{}'s default", program)};
    else
      lines[preset.setting] = {
          fmt::format("{} = 0", key_of(preset.setting)),
          fmt::format("{}, which the data decides: give their number", preset.words)};
  }
  return lines;
}

void add_sets(std::span<const std::string> sets, RunLines& lines) {
  for (const std::string& set : sets) {
    const size_t equals = std::min(set.find('='), set.size());
    const size_t dot = std::min(set.find('.'), equals);
    const Setting* setting =
        equals == set.size() || dot == equals
            ? nullptr
            : find_setting(set.substr(0, dot), set.substr(dot + 1, equals - dot - 1));
    if (setting == nullptr)
      fail(ErrorKind::kConfig, "--set {}: must be SECTION.KEY=VALUE of a setting", set);
    Value value = parse_text(*setting, set.substr(equals + 1));
    const std::string problem = accept(*setting, value);
    if (!problem.empty()) fail(ErrorKind::kConfig, "--set: {}: {}", setting->name(), problem);
    lines[setting->name()] = {fmt::format("{} = {}", setting->key, to_toml(value)), "--set"};
  }
}

// What has no line below: keys that change nothing, and why.
std::string silent_keys(const ImportResult& result) {
  std::string text;
  for (const ImportedKey& key : result.keys) {
    if (!key.settings.empty()) continue;
    const std::string note = key.note.empty() ? "" : ": " + key.note;
    text += one_line(fmt::format("#   {} {} = {}{}", kVerdictNames[size_t(key.verdict)], key.key,
                                 to_line(key.value), note)) +
            "\n";
  }
  return text;
}

}  // namespace

std::string command_of(const ImportResult& result, const std::string& run_file) {
  std::string command = "gxp train " + run_file;
  for (const auto& [setting, value] : result.settings) {
    if (!setting.starts_with("--")) continue;
    command += " " + setting;
    if (const auto* text = std::get_if<std::string>(&value))
      command += " " + to_shell_word(*text);
    else if (!std::holds_alternative<bool>(value))
      command += " " + to_toml(value);
  }
  const bool says_ranks = result.find("--nproc") != nullptr;
  if (!says_ranks && result.batch && result.batch->ranks.value_or(1) > 1)
    command += fmt::format(" --nproc {}", *result.batch->ranks);
  return command;
}

std::string to_run_file(const ImportResult& result, std::span<const std::string> sets) {
  RunLines lines = lines_of(result);
  add_sets(sets, lines);
  std::string text = fmt::format(
      "# {}, imported by gxp train --import.\n# {}\n",
      one_line(fmt::format("{} of {}", kSourceNames[size_t(*result.kind)], result.path)),
      one_line(command_of(result, "run.toml")));
  if (result.batch && result.batch->ranks && result.batch->sizes.global > 0)
    text += fmt::format("# A step has {} rows on {} ranks.\n", result.batch->sizes.global,
                        *result.batch->ranks);
  if (const std::string silent = silent_keys(result); !silent.empty())
    text += "# Keys that change no setting:\n" + silent;
  std::string_view section;
  for (const Setting& setting : settings()) {
    const auto line = lines.find(setting.name());
    if (line == lines.end()) continue;
    if (setting.section != section) text += fmt::format("\n[{}]\n", setting.section);
    section = setting.section;
    text += fmt::format("{:<32}  # {}\n", line->second.text, one_line(line->second.comment));
  }
  return text;
}

std::vector<std::string> remaining_problems(const std::string& run_file, const std::string& path) {
  std::vector<std::string> problems;
  const TomlDocument document = parse_toml(run_file);
  const bool has_model = std::ranges::any_of(document.entries, [](const TomlEntry& entry) {
    return entry.section == "model" && entry.key != "family";
  });
  if (!has_model)
    problems.push_back(path + ": model: the file describes none; give model.init, or its sizes");
  try {
    parse_config(run_file, path);
  } catch (const Error& error) {
    std::string_view message = error.what();
    // "3 problems in the settings", and a line for each.
    const bool has_head = message.find('\n') != std::string_view::npos;
    if (has_head) message.remove_prefix(message.find('\n') + 1);
    while (!message.empty()) {
      const size_t end = std::min(message.find('\n'), message.size());
      problems.emplace_back(message.substr(0, end));
      message.remove_prefix(std::min(end + 1, message.size()));
    }
  }
  return problems;
}

}  // namespace gxp
