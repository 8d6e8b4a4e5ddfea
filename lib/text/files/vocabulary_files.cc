#include "lib/text/files/vocabulary_files.h"

#include <charconv>
#include <filesystem>
#include <map>

#include "lib/base/error.h"
#include "lib/base/text_file.h"
#include "lib/text/pattern/known_patterns.h"

namespace gxp {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;

Json merges_of_file(const std::string& path) {
  const std::string content = read_text_file(path, kMaxFileBytes, "merges");
  Json merges = Json::array();
  for (std::string_view rest = content; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) merges.push_back(std::string(line));
  }
  return merges;
}

// {"type": "ByteLevel", ...} and what stands before it.
void add_steps_of_class(const Json& config, const std::string& where, Json& file) {
  const Json name = config.is_object() ? config.value("tokenizer_class", Json()) : Json();
  const std::string text = name.is_null() ? "GPT2Tokenizer" : to_text(name, where);
  const bool is_gpt2 = text == "GPT2Tokenizer" || text == "GPT2TokenizerFast";
  if (!is_gpt2 && text != "Qwen2Tokenizer" && text != "Qwen2TokenizerFast")
    fail(ErrorKind::kConfig,
         "{}: the pattern of the class {} is in no file and not known to gxp; save the tokenizer "
         "with its tokenizer.json",
         where, text);
  const Json prefix = config.is_object() ? config.value("add_prefix_space", Json()) : Json();
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", prefix == true},
                           {"trim_offsets", true},
                           {"use_regex", is_gpt2}};
  file["decoder"] = byte_level;
  file["pre_tokenizer"] = byte_level;
  if (is_gpt2) return;
  file["normalizer"] = {{"type", "NFC"}};
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", kQwen2Pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}};
}

// The tokens of special_tokens_map.json, which has no ids: they are in the vocabulary.
Json mapped_tokens(const Json& map, const Json& vocabulary, const std::string& where) {
  Json tokens = Json::array();
  const auto add = [&](const Json& token) {
    const std::string content =
        token.is_object() ? to_text(member(token, "content", where), where) : to_text(token, where);
    const auto id = vocabulary.find(content);
    if (id == vocabulary.end())
      fail(ErrorKind::kConfig,
           "{}: the special token '{}' is not in vocab.json, and its id in no other file; "
           "tokenizer_config.json with added_tokens_decoder would say it",
           where, content);
    tokens.push_back({{"id", *id}, {"content", content}, {"special", true}, {"normalized", false}});
  };
  if (map.is_null()) return tokens;
  for (const auto& [role, value] : to_object(map, where).items()) {
    if (value.is_array())
      for (const Json& token : value) add(token);
    else
      add(value);
  }
  return tokens;
}

}  // namespace

Json read_if_there(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  return parse_json(read_text_file(path, kMaxFileBytes, "tokenizer"), path);
}

Json listed_tokens(const Json& config, const std::string& where) {
  if (!config.is_object() || !config.contains("added_tokens_decoder")) return {};
  std::map<uint64_t, Json> by_id;
  for (const auto& [key, value] : to_object(config["added_tokens_decoder"], where).items()) {
    uint64_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size())
      fail(ErrorKind::kCorrupt, "{}: added_tokens_decoder has the id '{}'", where, key);
    Json token = to_object(value, where);
    token["id"] = id;
    by_id[id] = std::move(token);
  }
  Json tokens = Json::array();
  for (const auto& [id, token] : by_id) tokens.push_back(token);
  return tokens;
}

Json json_of_vocabulary(const std::string& directory) {
  const std::string where = "read " + directory;
  const Json config = read_if_there(directory, "tokenizer_config.json");
  Json file;
  Json vocabulary = read_if_there(directory, "vocab.json");
  to_object(vocabulary, where);
  add_steps_of_class(config, where, file);
  Json tokens = listed_tokens(config, where);
  if (tokens.is_null())
    tokens = mapped_tokens(read_if_there(directory, "special_tokens_map.json"), vocabulary, where);
  file["added_tokens"] = std::move(tokens);
  file["model"] = {{"type", "BPE"}, {"merges", merges_of_file(directory + "/merges.txt")}};
  file["model"]["vocab"] = std::move(vocabulary);
  return file;
}

}  // namespace gxp
