#include "lib/config/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "lib/base/hash.h"
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

std::string config_digest(const RunConfig& run) {
  std::string text;
  for (const auto& [name, value] : flatten(run)) text += fmt::format("{} = {}\n", name, value);
  return hash_hex(std::as_bytes(std::span(text)));
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

}  // namespace gxp
