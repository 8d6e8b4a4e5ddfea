#include <algorithm>
#include <ctime>
#include <filesystem>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/json/json.h"
#include "lib/base/text/joined.h"
#include "lib/base/text_file.h"
#include "lib/text/chat/chat_template.h"

namespace gxp {
namespace {

constexpr size_t kMaxFile = size_t{64} << 20;  // published ones: below 2 MiB

// An object; empty where there is no such file.
Json read_object(const std::string& path) {
  if (!std::filesystem::exists(path)) return Json::object();
  return to_object(parse_json(read_text_file(path, kMaxFile), path), path);
}

// A token is a text, or an object with its text as content.
void add_token(JinjaDict& tokens, const std::string& name, const Json& value) {
  const Json* text = &value;
  if (value.is_object() && value.contains("content")) text = &value["content"];
  if (text->is_string()) tokens.set(name, text->get<std::string>());
}

// tokenization_utils_base._from_pretrained of transformers 5: all members "*_token", and those of
// extra_special_tokens; special_tokens_map.json only for files that are older than
// added_tokens_decoder.
JinjaDict special_tokens_of(const Json& config, const std::string& directory) {
  Json members = config;
  if (!config.contains("added_tokens_decoder"))
    members.update(read_object(directory + "/special_tokens_map.json"));
  JinjaDict tokens;
  for (const auto& [name, value] : members.items())
    if (name.ends_with("_token")) add_token(tokens, name, value);
  if (members.contains("extra_special_tokens") && members["extra_special_tokens"].is_object())
    for (const auto& [name, value] : members["extra_special_tokens"].items())
      add_token(tokens, name, value);
  return tokens;
}

// Classes of single models have special tokens of their own where the files name none.
void check_tokens(const ChatTemplate& opened, const JinjaDict& tokens, const Json& config,
                  const std::string& path) {
  const std::string kind =
      config.contains("tokenizer_class") && config["tokenizer_class"].is_string()
          ? config["tokenizer_class"].get<std::string>()
          : "";
  for (const char* general :
       {"", "PreTrainedTokenizerFast", "PreTrainedTokenizer", "TokenizersBackend"})
    if (kind == general) return;
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"})
    if (opened.jinja().mentions(name) && tokens.find(name) == nullptr && !config.contains(name))
      fail(ErrorKind::kConfig,
           "open the chat template of {}: it uses {}, which the file does not have, and which {} "
           "may "
           "define; write \"{}\" into the file, null if there is none",
           path, name, kind, name);
}

std::string named_template(const Json& templates, const std::string& name,
                           const std::string& path) {
  if (templates.is_string() && name == "default") return templates.get<std::string>();
  if (templates.is_string())
    fail(ErrorKind::kConfig, "open the chat template '{}' of {}: the file has one, without a name",
         name, path);
  std::vector<std::string> names;
  for (const Json& each : to_array(templates, path + ": chat_template")) {
    names.push_back(to_text(member(each, "name", path), path + ": name of a chat template"));
    if (names.back() == name)
      return to_text(member(each, "template", path), path + ": chat template");
  }
  fail(ErrorKind::kConfig, "open the chat template '{}' of {}: the file has {}", name, path,
       joined(names, ", "));
}

}  // namespace

JinjaDict special_tokens_in(const std::string& directory) {
  return special_tokens_of(read_object(directory + "/tokenizer_config.json"), directory);
}

ChatTemplate open_chat_template(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/tokenizer_config.json";
  const std::string own_file = directory + "/chat_template.jinja";
  const Json config = read_object(path);
  std::string source;
  std::string place = "chat template " + own_file;
  if (std::filesystem::exists(own_file)) {
    if (name != "default")
      fail(ErrorKind::kConfig,
           "open the chat template '{}' of {}: chat_template.jinja is the only one", name,
           directory);
    source = read_text_file(own_file, kMaxFile, "chat template");
  } else {
    place = "chat template of " + path;
    const auto found = config.find("chat_template");
    if (found == config.end() || found->is_null())
      fail(ErrorKind::kConfig,
           "open the chat template of {}: there is neither chat_template.jinja nor "
           "\"chat_template\" in "
           "tokenizer_config.json",
           directory);
    source = named_template(*found, name, path);
  }
  const JinjaDict tokens = special_tokens_of(config, directory);
  ChatTemplate opened(source, place, tokens, std::time(nullptr));
  check_tokens(opened, tokens, config, path);
  return opened;
}

}  // namespace gxp
