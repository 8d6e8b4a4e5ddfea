#include "lib/config/print.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/config/settings.h"

namespace gxp {
namespace {

// The path in an origin may hold anything; a line break would end the comment.
std::string to_comment(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> flatten(const RunConfig& run) {
  std::vector<std::pair<std::string, std::string>> list;
  for (const Setting& setting : settings()) {
    list.emplace_back(setting.name(), to_toml(setting.get(run)));
  }
  return list;
}

std::string print_config(const LoadedConfig& loaded) {
  constexpr size_t kMaxColumn = 40;  // of the comments; a longer line pushes its own to the right
  std::vector<std::string> lines;
  size_t column = 0;
  for (const Setting& setting : settings()) {
    lines.push_back(setting.key + " = " + to_toml(setting.get(loaded.run)));
    if (lines.back().size() <= kMaxColumn) column = std::max(column, lines.back().size());
  }
  std::string text;
  std::string_view section;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Setting& setting = settings()[i];
    if (setting.section != section) {
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", setting.section);
      section = setting.section;
    }
    const std::string origin = to_comment(to_string(loaded.origins.at(setting.name())));
    text += fmt::format("{:<{}}  # {}\n", lines[i], column, origin);
  }
  return text;
}

std::string to_roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool line_start = escaped.empty() || escaped.back() == '\n';
    if (line_start && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string settings_manual() {
  const RunConfig defaults;
  std::string text;
  for (const SectionInfo& section : sections()) {
    text += fmt::format(".SS [{}]\n{}\n", section.name, to_roff(section.doc));
    for (const Setting& setting : settings()) {
      if (setting.section != section.name) continue;
      const std::string rule = to_string(setting.check);
      text += fmt::format(".TP\n.B {}\n{}\n.br\n", to_roff(setting.key), to_roff(setting.doc));
      text += to_roff(fmt::format(
          "Type: {}{}. Default: {}\n", to_string(setting.type), rule.empty() ? "" : ", " + rule,
          setting.default_varies ? "that of model.family" : to_toml(setting.get(defaults))));
    }
  }
  return text;
}

}  // namespace gxp
