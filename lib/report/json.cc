// Reports for programs. The only file of this folder that includes nlohmann-json.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lib/report/report.h"

namespace gxp {
namespace {

using Json = nlohmann::ordered_json;

struct ToJson {
  Json operator()(std::monostate) const { return nullptr; }
  template <class T>
  Json operator()(const T& value) const {
    return value;  // the library writes NaN and infinities as null
  }
};

// "in_place.time_us": the member time_us of the member in_place.
Json& member(Json& object, std::string_view key) {
  const size_t dot = key.find('.');
  Json& first = object[std::string(key.substr(0, dot))];
  return dot == std::string_view::npos ? first : member(first, key.substr(dot + 1));
}

Json table_json(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json& object = rows.emplace_back(Json::object());
    for (size_t i = 0; i < row.size(); ++i) {
      member(object, table.columns[i].key) = std::visit(ToJson{}, row[i]);
    }
  }
  return rows;
}

// The control characters that JSON allows in texts, and terminals obey: DEL and U+0080 to U+009F.
std::string without_controls(const std::string& json) {
  std::string text;
  for (size_t at = 0; at < json.size(); ++at) {
    const bool two = json[at] == '\xc2' && static_cast<unsigned char>(json[at + 1]) < 0xa0;
    if (two) ++at;
    const auto code = static_cast<unsigned char>(json[at]);
    if (two || code == 0x7f) {
      text += fmt::format("\\u{:04x}", code);
    } else {
      text += json[at];
    }
  }
  return text;
}

}  // namespace

std::string to_json(const Report& report) {
  Json root = {{"schema", report.schema}};
  for (const Fact& fact : report.facts) {
    member(root, fact.column.key) = std::visit(ToJson{}, fact.value);
  }
  for (const Table& table : report.tables) root[table.name] = table_json(table);
  // File names need not be UTF-8; what is not becomes U+FFFD.
  return without_controls(root.dump(2, ' ', false, Json::error_handler_t::replace)) + '\n';
}

}  // namespace gxp
