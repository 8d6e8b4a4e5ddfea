// Tokens with a role, and chat templates.
#include <algorithm>
#include <array>

#include "lib/ckpt/gguf/token_table.h"

namespace gxp {
namespace {

struct TokenRole {
  const char* name;  // "bos" of bos_token and bos_token_id
  const char* key;
};
constexpr std::array kRoles = {TokenRole{"bos", "tokenizer.ggml.bos_token_id"},
                               TokenRole{"eos", "tokenizer.ggml.eos_token_id"},
                               TokenRole{"unk", "tokenizer.ggml.unknown_token_id"},
                               TokenRole{"pad", "tokenizer.ggml.padding_token_id"}};

using RoleIds = std::map<std::string, uint64_t>;

// By tokenizer_config.json, which gives the token, or config.json, which gives its id.
std::optional<uint64_t> told_id(const char* role, const TokenizerJsons& jsons,
                                const TokenTable& table) {
  Json token = value_in(jsons.config, fmt::format("{}_token", role));
  if (token.is_object()) token = value_in(token, "content");
  if (token.is_string())
    if (const auto id = table.id_of(token.get<std::string>())) return id;
  const Json id = value_in(jsons.model, fmt::format("{}_token_id", role));
  if (id.is_number_unsigned() && id < table.texts().size()) return id.get<uint64_t>();
  return std::nullopt;
}

// The tokens that the post_processor puts before and behind a text; "": none.
struct TextFrame {
  std::string before, behind;
};

void take_template(const Json& single, const TokenizerJsons& jsons, TextFrame& frame) {
  std::string* side = &frame.before;
  for (const Json& item : single) {
    const Json special = value_in(value_in(item, "SpecialToken"), "id");
    if (!special.is_string()) {
      side = &frame.behind;
    } else if (side->empty()) {
      *side = special.get<std::string>();
    } else {
      refuse_tokenizer(jsons.file, "its post_processor puts two tokens at one end of a text");
    }
  }
}

void take_processor(const Json& processor, const TokenizerJsons& jsons, TextFrame& frame) {
  if (processor.is_null()) return;
  const std::string type = type_of(processor);
  if (type == "Sequence") {
    for (const Json& inner : value_in(processor, "processors")) take_processor(inner, jsons, frame);
  } else if (type == "TemplateProcessing") {
    take_template(value_in(processor, "single"), jsons, frame);
  } else if (type != "ByteLevel") {
    refuse_tokenizer(jsons.file, "its post_processor is {}, which llama.cpp does not have", type);
  }
}

// Makes the token at an end of texts that of the role.
void settle(const char* role, const std::string& token, const TokenizerJsons& jsons,
            const TokenTable& table, RoleIds& ids) {
  if (token.empty()) return;
  const auto id = table.id_of(token);
  const auto told = ids.find(role);
  if (!id || (told != ids.end() && told->second != *id))
    refuse_tokenizer(jsons.file,
                     "its post_processor puts '{}' at an end of texts, which is not the {}_token; "
                     "llama.cpp puts no other one there",
                     token, role);
  ids[role] = *id;
}

// Whether a role's token is put at its end of a text.
std::optional<bool> is_put(const char* role, const std::string& token,
                           const TokenizerJsons& jsons) {
  const Json told = value_in(jsons.config, fmt::format("add_{}_token", role));
  if (told.is_boolean()) return told.get<bool>();
  if (jsons.tokenizer.is_null()) return std::nullopt;  // llama.cpp's default
  return !token.empty();
}

void add_templates(const Json& templates, std::vector<GgufKey>& keys) {
  std::vector<std::string> names;
  for (const Json& entry : templates) {
    const Json name = value_in(entry, "name"), text = value_in(entry, "template");
    if (!name.is_string() || !text.is_string()) continue;
    if (name == "default") {
      keys.emplace_back("tokenizer.chat_template", text.get<std::string>());
      continue;
    }
    names.push_back(name.get<std::string>());
    keys.emplace_back("tokenizer.chat_template." + names.back(), text.get<std::string>());
  }
  if (!names.empty()) keys.emplace_back("tokenizer.chat_templates", std::move(names));
}

}  // namespace

std::vector<GgufKey> special_token_keys(const TokenizerJsons& jsons, const std::string& jinja,
                                        const TokenTable& table) {
  RoleIds ids;
  for (const TokenRole& role : kRoles)
    if (const auto id = told_id(role.name, jsons, table)) ids[role.name] = *id;
  TextFrame frame;
  take_processor(value_in(jsons.tokenizer, "post_processor"), jsons, frame);
  settle("bos", frame.before, jsons, table, ids);
  settle("eos", frame.behind, jsons, table, ids);
  std::vector<GgufKey> keys;
  for (const TokenRole& role : kRoles)
    if (const auto id = ids.find(role.name); id != ids.end())
      keys.emplace_back(role.key, uint32_t(id->second));
  if (const auto put = is_put("bos", frame.before, jsons))
    keys.emplace_back("tokenizer.ggml.add_bos_token", *put);
  if (const auto put = is_put("eos", frame.behind, jsons))
    keys.emplace_back("tokenizer.ggml.add_eos_token", *put);
  const Json chat = value_in(jsons.config, "chat_template");
  if (!jinja.empty())
    keys.emplace_back("tokenizer.chat_template", jinja);
  else if (chat.is_string())
    keys.emplace_back("tokenizer.chat_template", chat.get<std::string>());
  else if (chat.is_array())
    add_templates(chat, keys);
  return keys;
}

}  // namespace gxp
