#include "lib/text/jinja/written.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/text/jinja/python_text.h"

namespace gxp {
namespace {

constexpr size_t kMaxJsonDepth = 64;

class JinjaJsonReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JinjaJsonReader(const std::string& where) : where_(where) {}

  JinjaValue take() { return std::move(root_); }

  bool null() override { return add(JinjaNone{}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > uint64_t(INT64_MAX)) refuse_number(std::to_string(value));
    return add(value);
  }
  bool number_float(number_float_t value, const string_t& digits) override {
    if (digits.find_first_of(".eE") == std::string::npos) refuse_number(digits);
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    Container& inner = open_.back();
    if (inner.dict.find(name) != nullptr)
      fail(ErrorKind::kCorrupt, "{}: the key '{}' occurs twice in one object", where_, name);
    inner.key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::json::exception& error) override {
    fail(ErrorKind::kCorrupt, "{}: {}", where_, error.what());
  }

 private:
  struct Container {
    bool is_dict = false;
    std::string key{};
    JinjaList list{};
    JinjaDict dict{};
  };

  [[noreturn]] void refuse_number(const std::string& digits) {
    fail(ErrorKind::kCorrupt, "{}: the whole number {} has more than 64 bits", where_, digits);
  }

  bool add(JinjaValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Container& inner = open_.back(); inner.is_dict) {
      inner.dict.set(inner.key, std::move(value));
    } else {
      inner.list.items.push_back(std::move(value));
    }
    return true;
  }

  bool open(bool is_dict) {
    if (open_.size() >= kMaxJsonDepth)
      fail(ErrorKind::kCorrupt, "{}: JSON is nested deeper than {}", where_, kMaxJsonDepth);
    open_.push_back({.is_dict = is_dict});
    return true;
  }

  bool close() {
    Container inner = std::move(open_.back());
    open_.pop_back();
    return add(inner.is_dict ? JinjaValue(std::move(inner.dict))
                             : JinjaValue(std::move(inner.list)));
  }

  const std::string& where_;
  JinjaValue root_;
  std::vector<Container> open_;
};

// A text of bounded length, in one of two spellings.
class PythonWriter {
 public:
  std::string take() { return std::move(text_); }

  void add(std::string_view part) {
    if (text_.size() + part.size() > kMaxJinjaText)
      jinja_fail("a text is longer than {} bytes", kMaxJinjaText);
    text_ += part;
  }

  void add_repr(const JinjaValue& value) {
    if (value.is_markup()) jinja_fail("printing a list or dict of HTML is not supported");
    if (value.text() != nullptr) return add_quoted(*value.text());
    if (value.dict() != nullptr) return add_dict_repr(*value.dict());
    if (value.list() != nullptr) return add_list_repr(value);
    if (value.undefined() != nullptr) return add("Undefined");
    add(printed(value));
  }

  void add_json(const JinjaValue& value, const JsonLayout& layout, const std::string& line) {
    if (value.is_none()) return add("null");
    if (value.is_bool()) return add(is_true(value) ? "true" : "false");
    if (value.is_float()) return add_json_float(*value.number());
    if (value.text() != nullptr) return add_json_text(*value.text());
    if (value.integer()) return add(std::to_string(*value.integer()));
    const std::string inner = layout.indent ? line + *layout.indent : "";
    if (const JinjaDict* dict = value.dict()) return add_json_dict(*dict, layout, {line, inner});
    const JinjaList* list = value.list();
    const bool is_array = list != nullptr && (list->kind == JinjaListKind::kList ||
                                              list->kind == JinjaListKind::kTuple);
    if (!is_array) jinja_fail("tojson cannot write a {}", kind_of(value));
    add("[");
    for (const JinjaValue& item : list->items) {
      if (&item != list->items.data()) add(layout.between_items);
      add(inner);
      add_json(item, layout, inner);
    }
    add(list->items.empty() ? "]" : line + "]");
  }

 private:
  struct Lines {
    const std::string& outer;  // a line end and the indentation, or "" where there is none
    const std::string& inner;
  };

  void add_json_dict(const JinjaDict& dict, const JsonLayout& layout, Lines lines) {
    std::vector<const JinjaDict::Entry*> entries;
    for (const JinjaDict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (layout.sort_keys)
      std::ranges::sort(entries, {}, [](const JinjaDict::Entry* entry) { return entry->first; });
    add("{");
    for (const JinjaDict::Entry* entry : entries) {
      if (entry != entries.front()) add(layout.between_items);
      add(lines.inner);
      add_json_text(entry->first);
      add(layout.after_key);
      add_json(entry->second, layout, lines.inner);
    }
    add(entries.empty() ? "}" : lines.outer + "}");
  }

  void add_json_float(double value) {
    const std::string text = float_text(value);
    add(text == "nan" ? "NaN" : text == "inf" ? "Infinity" : text == "-inf" ? "-Infinity" : text);
  }

  void add_json_text(std::string_view text) {
    add("\"");
    for (const char& c : text) {
      constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b";
      const size_t place = kEscaped.find(c);
      if (place != std::string_view::npos) {
        add({'\\', std::string_view("\"\\nrtfb")[place]});
      } else if (static_cast<unsigned char>(c) < 0x20) {
        add(fmt::format("\\u{:04x}", int(c)));
      } else {
        add(std::string_view(&c, 1));
      }
    }
    add("\"");
  }

  void add_quoted(std::string_view text) {
    const bool is_double =
        text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
    const char quote = is_double ? '"' : '\'';
    add(std::string_view(&quote, 1));
    for (const char& c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80)
        jinja_fail(
            "printing a list or dict with text that is not ASCII is not supported; tojson is");
      constexpr std::string_view kEscaped = "\\\n\r\t";
      const size_t place = kEscaped.find(c);
      if (place != std::string_view::npos) {
        add({'\\', std::string_view("\\nrt")[place]});
      } else if (c == quote) {
        add({'\\', c});
      } else if (byte < 0x20 || byte == 0x7f) {
        add(fmt::format("\\x{:02x}", byte));
      } else {
        add(std::string_view(&c, 1));
      }
    }
    add(std::string_view(&quote, 1));
  }

  void add(std::initializer_list<char> characters) {
    add(std::string_view(characters.begin(), characters.size()));
  }

  void add_dict_repr(const JinjaDict& dict) {
    add("{");
    for (const JinjaDict::Entry& entry : dict.entries()) {
      if (&entry != dict.entries().data()) add(", ");
      add_quoted(entry.first);
      add(": ");
      add_repr(entry.second);
    }
    add("}");
  }

  void add_list_repr(const JinjaValue& value) {
    const JinjaList& list = *value.list();
    const bool is_tuple = list.kind == JinjaListKind::kTuple;
    if (!is_tuple && list.kind != JinjaListKind::kList)
      jinja_fail("printing a {} is not supported", kind_of(value));
    add(is_tuple ? "(" : "[");
    for (const JinjaValue& item : list.items) {
      if (&item != list.items.data()) add(", ");
      add_repr(item);
    }
    add(is_tuple ? list.items.size() == 1 ? ",)" : ")" : "]");
  }

  std::string text_;
};

}  // namespace

JinjaValue parse_jinja_json(std::string_view text, const std::string& where) {
  JinjaJsonReader reader(where);
  try {
    nlohmann::json::sax_parse(text, &reader);
  } catch (const JinjaError& error) {
    fail(ErrorKind::kCorrupt, "{}: {}", where, error.what());
  }
  return reader.take();
}

std::string printed(const JinjaValue& value) {
  if (value.text() != nullptr) return *value.text();
  if (value.undefined() != nullptr) return "";
  if (value.is_none()) return "None";
  if (value.is_bool()) return is_true(value) ? "True" : "False";
  if (value.is_float()) return float_text(*value.number());
  if (value.integer()) return std::to_string(*value.integer());
  if (value.dict() == nullptr && value.list() == nullptr)
    jinja_fail("printing a {} is not supported", kind_of(value));
  PythonWriter writer;
  writer.add_repr(value);
  return writer.take();
}

std::string to_python_json(const JinjaValue& value, const JsonLayout& layout) {
  PythonWriter writer;
  writer.add_json(value, layout, layout.indent ? "\n" : "");
  return writer.take();
}

}  // namespace gxp
