#include "lib/data/corpus/document_encoder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>
#include <variant>

#include "lib/base/error.h"
#include "lib/data/documents/token_cache.h"
#include "lib/device/thread_pool.h"
#include "lib/text/byte_tokenizer.h"
#include "lib/text/chat/chat_template.h"
#include "lib/text/chat/conversation.h"
#include "lib/text/chat/training_text.h"
#include "lib/text/jinja/written.h"

namespace gxp {
namespace {

// Of what is read of a chat, and which of it is trained: another number where that changes, so that no
// tokens of older rules are used.
constexpr std::string_view kChatRules = "2";

namespace fs = std::filesystem;

constexpr int kByteVocabulary = 256;

// Whether a tokenizer of some kind is there; open_tokenizer() may refuse it.
bool has_tokenizer_files(const std::string& directory) {
  std::error_code error;
  for (const char* name : {"tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt",
                           "spiece.model", "tokenizer_config.json"})
    if (fs::exists(fs::path(directory) / name, error)) return true;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".tiktoken") return true;
  return false;
}

std::string directory_of(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return path;
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// What model.init or model.config names, or where that file lies.
std::string model_directory(const RunConfig& run) {
  for (const std::string& path : {run.model.init, run.model.config}) {
    std::error_code error;
    if (!path.empty() && fs::exists(path, error)) return directory_of(path);
  }
  return "";
}

// The eos_token that a directory names.
std::optional<std::string> eos_token(const std::string& path) {
  const JinjaDict special = special_tokens_in(directory_of(path));
  const JinjaValue* eos = special.find("eos_token");
  return eos != nullptr && eos->text() != nullptr ? std::optional(*eos->text()) : std::nullopt;
}

// The token that ends texts in pre-training is preferred to the one that ends a turn of a chat,
// which is the eos_token of models that answer.
std::optional<std::string> end_of_text(const std::string& path, const Tokenizer& tokenizer) {
  for (const char* token : {"<|endoftext|>", "<|end_of_text|>"})
    if (tokenizer.find(token)) return token;
  if (auto eos = eos_token(path)) return eos;
  for (const char* token : {"</s>", "<eos>"})
    if (tokenizer.find(token)) return token;
  return std::nullopt;
}

void append(std::vector<int32_t>& ids, const std::vector<int32_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace

std::string tokenizer_path(const RunConfig& run) {
  if (run.data.tokenizer == kByteTokenizer) return "";
  if (run.data.tokenizer != kAutoTokenizer) return run.data.tokenizer;
  const std::string directory = model_directory(run);
  return !directory.empty() && has_tokenizer_files(directory) ? directory : "";
}

std::string tokenizer_directory(const RunConfig& run) {
  const std::string path = tokenizer_path(run);
  return path.empty() ? "" : directory_of(path);
}

bool reads_bytes(const RunConfig& run) {
  return tokenizer_path(run).empty() &&
         (run.data.tokenizer == kByteTokenizer || run.model.vocab_size == kByteVocabulary);
}

bool has_tokenizer(const RunConfig& run) {
  return !tokenizer_path(run).empty() || reads_bytes(run);
}

std::shared_ptr<const Tokenizer> tokenizer_of(const RunConfig& run) {
  const std::string path = tokenizer_path(run);
  if (path.empty()) {
    if (!reads_bytes(run))
      fail(
          ErrorKind::kConfig,
          "data.tokenizer: neither model.init nor model.config names a directory with a tokenizer, "
          "and bytes are tokens 0 to 255, but model.vocab_size is {}; name the directory with the "
          "model's tokenizer, or set \"byte\" if bytes are meant",
          run.model.vocab_size);
    return byte_tokenizer();
  }
  auto tokenizer = open_tokenizer(path);
  // Without a model, documents are merely shown.
  if (run.model.vocab_size > 0 && tokenizer->vocabulary_end() > run.model.vocab_size)
    fail(ErrorKind::kConfig,
         "data.tokenizer: {} has token ids up to {}, but model.vocab_size is {}; it is not the "
         "tokenizer of this model",
         path, tokenizer->vocabulary_end() - 1, run.model.vocab_size);
  return tokenizer;
}

ChatTemplate chat_template_of(const RunConfig& run) {
  const std::string path = tokenizer_path(run);
  if (path.empty())
    fail(
        ErrorKind::kConfig,
        "chats are written by a chat template, which comes with a tokenizer; set data.tokenizer to "
        "a directory with both");
  return open_chat_template(directory_of(path), run.data.chat_template);
}

int32_t end_of_turn(const RunConfig& run, const Tokenizer& tokenizer) {
  const std::string path = tokenizer_path(run);
  const auto token = eos_token(path);
  const auto id = token ? tokenizer.find(*token) : std::nullopt;
  if (!id) fail(ErrorKind::kConfig, "{} names no eos_token of its tokenizer; give --stop", path);
  return *id;
}

DocumentEncoder::DocumentEncoder(const RunConfig& run)
    : run_(run),
      tokenizer_(tokenizer_of(run)),
      threads_(default_thread_count(1)),
      end_text_(run.data.end_token) {
  const std::string path = tokenizer_path(run);
  if (end_text_ == kNoEndToken || (end_text_.empty() && path.empty())) {
    end_text_.clear();
    return;
  }
  if (end_text_.empty()) end_text_ = end_of_text(path, *tokenizer_).value_or("");
  if (end_text_.empty())
    fail(ErrorKind::kConfig,
         "data.end_token: {} does not tell which token ends a text; name it, or set \"{}\"", path,
         kNoEndToken);
  end_ = tokenizer_->find(end_text_);
  if (!end_)
    fail(ErrorKind::kConfig, "data.end_token: the tokenizer{} has no token '{}'",
         path.empty() ? " of bytes" : " " + path, end_text_);
}

DocumentEncoder::~DocumentEncoder() = default;

const ChatTemplate& DocumentEncoder::chat_template() const {
  std::call_once(opens_template_, [this] {
    chat_template_ = std::make_unique<const ChatTemplate>(chat_template_of(run_));
  });
  return *chat_template_;
}

DocumentEncoder::Encoded DocumentEncoder::encode_chat(const DocumentView& document,
                                                      const std::string& where) const {
  const std::optional<ChatExample> example =
      read_chat_example(parse_jinja_json(document.text, where), where);
  if (!example) fail(ErrorKind::kCorrupt, "{}: it is no chat, unlike the first record", where);
  EncodedDocument encoded;
  if (const auto* pair = std::get_if<PromptCompletion>(&example->content)) {
    tokenizer_->encode(pair->prompt, encoded.ids);
    encoded.trained.assign(encoded.ids.size(), 0);
    tokenizer_->encode(pair->completion, encoded.ids);
    encoded.trained.resize(encoded.ids.size(), 1);
    encoded.text = pair->prompt + pair->completion;
    return {std::move(encoded), true};
  }
  TrainingText text =
      render_for_training(chat_template(), std::get<Conversation>(example->content), where);
  std::vector<ByteSpan> spans;
  tokenizer_->encode(text.text, encoded.ids, &spans);
  encoded.trained = trained_of(spans, text.trained);
  encoded.text = std::move(text.text);
  return {std::move(encoded), false};
}

DocumentEncoder::Encoded DocumentEncoder::encode_any(DocumentForm form,
                                                     const DocumentView& document,
                                                     const std::string& where) const {
  if (form == DocumentForm::kChat) return encode_chat(document, where);
  Encoded encoded;
  try {
    tokenizer_->encode_large(document.text, threads_, encoded.document.ids);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", where, error.what());
  }
  return encoded;
}

EncodedDocument DocumentEncoder::encode(DocumentForm form, const DocumentView& document,
                                        const std::string& where) const {
  return encode_any(form, document, where).document;
}

EncodedDocument DocumentEncoder::pack(DocumentForm form, const DocumentView& document,
                                      const std::string& where) const {
  auto [inner, is_text] = encode_any(form, document, where);
  if (!is_text) return std::move(inner);
  EncodedDocument packed{.ids = tokenizer_->prefix(), .trained = {}};
  const size_t begin = packed.ids.size(), end = begin + inner.ids.size();
  append(packed.ids, inner.ids);
  append(packed.ids, tokenizer_->suffix());
  if (end_ && (packed.ids.empty() || packed.ids.back() != *end_)) packed.ids.push_back(*end_);
  if (inner.trained.empty()) return packed;
  packed.trained.assign(begin, 0);
  packed.trained.insert(packed.trained.end(), inner.trained.begin(), inner.trained.end());
  packed.trained.resize(packed.trained.size() + packed.ids.size() - end, 1);
  return packed;
}

std::string DocumentEncoder::digest(DocumentForm form) const {
  std::string chat;
  try {
    if (form == DocumentForm::kChat) chat = chat_template().digest();
  } catch (const Error& error) {  // prompts and completions need none
    if (error.kind() != ErrorKind::kConfig) throw;
  }
  const std::array parts = {tokenizer_->digest(), end_text_, chat, std::string(kChatRules)};
  return token_cache_key(parts);
}

std::string DocumentEncoder::description(DocumentForm form) const {
  return fmt::format("{}{}{}", tokenizer_->description(),
                     end_ ? fmt::format("; texts end in {}", end_text_) : "",
                     form == DocumentForm::kChat ? "; chats by the chat template" : "");
}

}  // namespace gxp
