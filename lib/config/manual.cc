#include "lib/config/manual.h"

#include <fmt/format.h>

#include "lib/config/settings.h"

namespace gxp {

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
      text += to_roff(fmt::format("Type: {}{}. Default: {}\n", to_string(setting.type),
                                  rule.empty() ? "" : ", " + rule, to_toml(setting.get(defaults))));
    }
  }
  return text;
}

}  // namespace gxp
