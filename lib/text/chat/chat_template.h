// The chat template of a model's directory: conversations as the text that the model is trained on, as
// transformers' apply_chat_template(tokenize=False) writes it.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/jinja/template.h"

namespace gxp {

// What an iteration of a loop over the messages has printed.
struct MessageSpan {
  size_t message = 0;
  ByteSpan printed;
};

struct ChatRendering {
  std::string text;
  std::vector<ByteSpan> generation;   // what each {% generation %} block has printed, in order
  std::vector<MessageSpan> messages;  // none is blank; a message may have several, or none
};

// Immutable; any thread may call it.
class ChatTemplate {
 public:
  // special_tokens: variables of the template, "eos_token" and so on. now: what strftime_now sees in
  // every rendering.
  ChatTemplate(std::string_view source, std::string name, JinjaDict special_tokens,
               std::time_t now);

  // messages: a list of dicts with role and content. As in transformers, members that are none are
  // left out, and reasoning is there under each of its names. A content of one text part is that text;
  // one of several stays as it is where the template looks at parts, and is joined elsewhere.
  // variables: what else the template sees, such as tools. kCorrupt: as JinjaTemplate::render().
  [[nodiscard]] ChatRendering render(const JinjaValue& messages, bool add_generation_prompt,
                                     const JinjaDict& variables = {}) const;

  // The text after which the model answers this message of a user.
  [[nodiscard]] std::string prompt(std::string_view message) const;

  [[nodiscard]] const JinjaTemplate& jinja() const { return jinja_; }
  // Of all that renderings depend on besides messages and variables; with the day, where the template
  // asks for it.
  [[nodiscard]] const std::string& digest() const { return digest_; }

 private:
  JinjaTemplate jinja_;
  JinjaDict special_tokens_;
  std::time_t now_;
  std::string digest_;
};

// The special tokens that a directory names, "eos_token" and so on, as transformers reads them. kIo,
// kCorrupt.
JinjaDict special_tokens_in(const std::string& directory);

// Of a directory: chat_template.jinja, or else that of `name` in tokenizer_config.json, where it may
// have several. Special tokens are those of tokenizer_config.json and, where transformers looks there,
// special_tokens_map.json.
// kConfig: there is none; there is none of that name; the template uses a special token that only
// transformers' class of the tokenizer would know. kIo; kCorrupt.
ChatTemplate open_chat_template(const std::string& directory, const std::string& name = "default");

}  // namespace gxp
