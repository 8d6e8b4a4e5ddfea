#include "tests/fuzz/tokenizer_inputs.h"

#include <algorithm>
#include <cstdlib>

#include "lib/base/json/json.h"
#include "lib/text/chat/chat_template.h"
#include "lib/text/chat/conversation.h"
#include "lib/text/chat/training_text.h"
#include "lib/text/files/rank_file.h"
#include "lib/text/files/sentencepiece_file.h"
#include "lib/text/files/tokenizer_json.h"
#include "lib/text/jinja/written.h"
#include "lib/tools/imports/import.h"
#include "lib/tools/imports/run_file.h"
#include "tests/fuzz/memory_file.h"

namespace gxp {
namespace {

struct FileAndText {
  std::string file;
  std::string text;
};

FileAndText cut_at_length(const std::string& bytes) {
  if (bytes.size() < 2) return {};
  const size_t length = size_t(uint8_t(bytes[0])) | size_t(uint8_t(bytes[1])) << 8;
  const size_t end = std::min(bytes.size(), 2 + length);
  return {bytes.substr(2, end - 2), bytes.substr(end)};
}

// Ids are those of tokens, with or without their places, which lie in the text.
void use(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids, again;
  std::vector<ByteSpan> spans;
  tokenizer.encode(text, ids);
  tokenizer.encode(text, again, &spans);
  const bool are_tokens = std::ranges::all_of(
      ids, [&](int32_t id) { return id >= 0 && id < tokenizer.vocabulary_end(); });
  const bool are_places = std::ranges::all_of(
      spans, [&](ByteSpan span) { return span.begin <= span.end && span.end <= text.size(); });
  if (ids != again || spans.size() != ids.size() || !are_tokens || !are_places) std::abort();
  tokenizer.decode(ids, true);
}

void read_tokenizer_json(const std::string& bytes) {
  const std::string file = bytes.substr(0, bytes.find('\0'));
  const auto tokenizer = make_bpe_tokenizer(parts_of_json(parse_json(file, "input"), "read input"));
  use(*tokenizer, bytes.substr(std::min(bytes.size(), file.size() + 1)));
}

void read_tiktoken(const std::string& bytes) {
  const FileAndText input = cut_at_length(bytes);
  use(*read_rank_file(input.file, "input", *known_rank_rules("cl100k_base", 0)), input.text);
}

void read_sentencepiece_input(const std::string& bytes) {
  const FileAndText input = cut_at_length(bytes);
  const auto tokenizer = read_sentencepiece(input.file, "input");
  use(*tokenizer, input.text);
}

// What is trained lies in the text, in its order.
void read_chat(const std::string& bytes) {
  const std::string file = bytes.substr(0, bytes.find('\0'));
  const std::string line = bytes.substr(std::min(bytes.size(), file.size() + 1));
  const ChatTemplate chat(file, "input", {}, 0);
  const auto example = read_chat_example(parse_jinja_json(line, "read line"), "read line");
  if (!example || !std::holds_alternative<Conversation>(example->content)) return;
  const TrainingText text =
      render_for_training(chat, std::get<Conversation>(example->content), "read line");
  uint32_t end = 0;
  for (const ByteSpan& span : text.trained) {
    if (span.begin < end || span.end < span.begin || span.end > text.text.size()) std::abort();
    end = span.end;
  }
}

// What imports makes a run file.
void read_import(const std::string& bytes) {
  const ImportResult result = import_file({.path = path_of_bytes(bytes), .ranks = 8});
  if (result.imports()) to_run_file(result, {});
}

constexpr struct {
  std::string_view name;
  void (*read)(const std::string& bytes);
} kTokenizers[] = {{"tokenizer", read_tokenizer_json},
                   {"tiktoken", read_tiktoken},
                   {"sentencepiece", read_sentencepiece_input},
                   {"chat", read_chat},
                   {"import", read_import}};

}  // namespace

std::optional<CheckpointInput> find_tokenizer_input(std::string_view name) {
  for (const auto& row : kTokenizers)
    if (row.name == name) return CheckpointInput{false, row.read};
  return std::nullopt;
}

}  // namespace gxp
