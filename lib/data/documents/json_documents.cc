#include "lib/data/documents/json_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/data/documents/json_record.h"

namespace gxp {
namespace {

using FieldPath = std::vector<std::string>;

// What a record must have, and what it is then.
struct RecordShape {
  DocumentForm form;
  bool are_pairs;
  std::string words;
  std::vector<FieldPath> fields;  // a text: the one that holds it
};

// The shapes that are told by a record's fields; `name` is what data.field calls one.
struct KnownShape {
  std::string_view name, words;
  std::string_view first, second = "";
  DocumentForm form = DocumentForm::kChat;

  [[nodiscard]] std::vector<FieldPath> fields() const {
    std::vector<FieldPath> fields = {{std::string(first)}};
    if (!second.empty()) fields.push_back({std::string(second)});
    return fields;
  }
  [[nodiscard]] RecordShape shape() const {
    return {form, first == "prompt", std::string(words), fields()};
  }
};
constexpr std::array kShapes = {
    KnownShape{"text", "field text", "text", "", DocumentForm::kText},
    KnownShape{"messages", "messages", "messages"},
    KnownShape{"conversations", "conversations", "conversations"},
    KnownShape{"prompt+completion", "prompt and completion", "prompt", "completion"},
    KnownShape{"instruction+output", "Alpaca", "instruction", "output"}};

bool has_all(const JsonRecord& record, const std::vector<FieldPath>& fields) {
  return std::ranges::all_of(fields, [&](const FieldPath& field) {
    return record.find(field).type != JsonType::kMissing;
  });
}

std::string names_in(const JsonRecord& record) {
  constexpr size_t kMostNames = 12;
  std::vector<std::string> names = record.names();
  if (names.empty()) return "no field";
  const bool is_long = names.size() > kMostNames;
  if (is_long) names.resize(kMostNames);
  return fmt::format("the fields {}{}", joined(names, ", "), is_long ? ", ..." : "");
}

// What data.field says. Throws kConfig from `place` ("a.jsonl, line 1").
RecordShape named_shape(const JsonRecord& record, const std::string& field,
                        const std::string& place) {
  const auto* const known = std::ranges::find(kShapes, field, &KnownShape::name);
  const FieldPath path = split_field(field);
  const bool is_known = known != kShapes.end() && known->form == DocumentForm::kChat;
  const bool is_pair = is_known && !known->second.empty();
  const bool is_chat = is_pair || (is_known && record.find(path).type == JsonType::kList);
  RecordShape shape =
      is_chat ? known->shape() : RecordShape{DocumentForm::kText, false, "field " + field, {path}};
  if (has_all(record, shape.fields)) return shape;
  fail(ErrorKind::kConfig, "read {}: no field {} (data.field), but {}", place, field,
       names_in(record));
}

// What a record without data.field is. Throws likewise.
RecordShape shape_of(const JsonRecord& record, const std::string& place) {
  if (has_all(record, {{"chosen"}, {"rejected"}}))
    fail(
        ErrorKind::kConfig,
        "read {}: it is a preference pair, with {}; gxp does not train on pairs; set data.field to "
        "the field of a text or of a chat's messages",
        place, names_in(record));
  const auto fits = [&](const KnownShape& shape) { return has_all(record, shape.fields()); };
  const auto* const shape = std::ranges::find_if(kShapes, fits);
  if (shape == kShapes.end())
    fail(ErrorKind::kConfig,
         "read {}: no field text, and no chat (messages, conversations, prompt and completion, or "
         "instruction and output), but {}; set data.field to the text's",
         place, names_in(record));
  const auto* const other = std::find_if(shape + 1, kShapes.end(), fits);
  if (other != kShapes.end())
    fail(ErrorKind::kConfig,
         "read {}: it has both {} and {}; set data.field = \"{}\" or data.field = \"{}\"", place,
         shape->words, other->words, shape->name, other->name);
  return shape->shape();
}

class JsonDocuments : public DocumentReader {
 public:
  // What is known when the first record has been looked at.
  struct Start {
    RecordSource records;
    std::unique_ptr<JsonRecord> record;  // parsed
    RawRecord raw;
    RecordShape shape;
  };
  JsonDocuments(const std::string& path, std::string kind, Start start)
      : DocumentReader(path, std::move(kind),
                       {.form = start.shape.form,
                        .container = DocumentContainer::kJson,
                        .are_pairs = start.shape.are_pairs,
                        .several = true}),
        start_(std::move(start)) {}

  std::optional<DocumentView> next() override {
    if (!is_first_) {
      const auto raw = start_.records.next();
      if (!raw) return std::nullopt;
      start_.raw = *raw;
      parse(*start_.record, *raw, path());
    }
    is_first_ = false;
    const RawRecord& raw = start_.raw;
    return DocumentView{.number = count_++, .line = raw.line, .text = text_of(raw)};
  }
  [[nodiscard]] uint64_t consumed() const override { return start_.records.consumed(); }

  static void parse(JsonRecord& record, const RawRecord& raw, const std::string& path) {
    const std::string problem = record.parse(raw.text);
    if (problem.empty()) return;
    if (raw.is_cut && raw.text.front() == '{' && raw.text.back() != '}')
      fail(ErrorKind::kCorrupt, "read {}, line {}: the line is cut off ({}); the file ends in it",
           path, raw.line, problem);
    const bool is_opened = raw.text == "{" || raw.text.ends_with(",");
    fail(ErrorKind::kCorrupt, "read {}, line {}: {}{}", path, raw.line, problem,
         is_opened ? "; one object over several lines must be written in one: jq -c . FILE" : "");
  }

 private:
  [[nodiscard]] std::string_view text_of(const RawRecord& raw) const {
    for (const FieldPath& field : start_.shape.fields) {
      const JsonValue value = start_.record->find(field);
      if (form() == DocumentForm::kChat && value.type != JsonType::kMissing) continue;
      if (value.type == JsonType::kText) return value.text;
      const std::string name = joined(field, ".");
      if (value.type == JsonType::kMissing)
        fail(ErrorKind::kCorrupt, "read {}, line {}: no field {}, but {}", path(), raw.line, name,
             names_in(*start_.record));
      fail(ErrorKind::kCorrupt, "read {}, line {}: field {} is {}, not a string", path(), raw.line,
           name, to_string(value.type));
    }
    return raw.text;
  }

  Start start_;
  bool is_first_ = true;
  uint64_t count_ = 0;
};

}  // namespace

std::vector<std::string> split_field(const std::string& field) {
  std::vector<std::string> path;
  for (size_t begin = 0; begin <= field.size();) {
    const size_t end = std::min(field.find('.', begin), field.size());
    path.push_back(field.substr(begin, end - begin));
    begin = end + 1;
  }
  return path;
}

std::unique_ptr<DocumentReader> read_json_documents(const std::string& path, RecordSource records,
                                                    const std::string& field,
                                                    const std::string& packing) {
  const auto raw = records.next();
  if (!raw) fail(ErrorKind::kCorrupt, "read {}: it holds no documents", path);
  auto record = std::make_unique<JsonRecord>();
  JsonDocuments::parse(*record, *raw, path);
  const std::string place = fmt::format("{}, line {}", path, raw->line);
  RecordShape shape = field.empty() ? shape_of(*record, place) : named_shape(*record, field, place);
  const std::string_view container =
      records.layout() == RecordLayout::kLines ? "JSON lines" : "JSON array";
  std::string kind = shape.form == DocumentForm::kChat
                         ? fmt::format("chats, {}, {}{}", shape.words, container, packing)
                         : fmt::format("{}, {}{}", container, shape.words, packing);
  return std::make_unique<JsonDocuments>(
      path, std::move(kind),
      JsonDocuments::Start{std::move(records), std::move(record), *raw, std::move(shape)});
}

}  // namespace gxp
