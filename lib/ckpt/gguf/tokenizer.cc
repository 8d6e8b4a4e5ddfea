#include "lib/ckpt/gguf/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "lib/base/text/utf8.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/gguf/token_table.h"
#include "lib/ckpt/huggingface/huggingface.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxTokenizerBytes = 64u << 20;
constexpr const char* kTokenizerJson = "tokenizer.json";
constexpr const char* kTokenizerModel = "tokenizer.model";
constexpr const char* kStoredJson = "tokenizer.huggingface.json";
constexpr const char* kFileKeys = "gxp.file.";

class CompanionFiles {
 public:
  explicit CompanionFiles(const std::vector<std::string>& paths) {
    for (const std::string& path : paths)
      paths_[std::filesystem::path(path).filename().string()] = path;
  }
  [[nodiscard]] bool has(const std::string& name) const { return paths_.contains(name); }
  [[nodiscard]] const std::string& path(const std::string& name) const { return paths_.at(name); }
  [[nodiscard]] std::string text(const std::string& name) const {
    return has(name) ? read_text(path(name), kMaxTokenizerBytes) : "";
  }
  [[nodiscard]] Json json(const std::string& name) const {
    return has(name) ? parse_python_json(text(name), path(name)) : Json();
  }
  [[nodiscard]] const std::map<std::string, std::string>& paths() const { return paths_; }

 private:
  std::map<std::string, std::string> paths_;
};

Json merges_in(const std::string& text) {
  Json merges = Json::array();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    const bool is_version = begin == 0 && line.starts_with("#version");
    if (!line.empty() && !is_version) merges.push_back(line);
    begin = end + 1;
  }
  return merges;
}

// The class of a directory without tokenizer.json says how the text is split.
Json pre_tokenizer_of(const CompanionFiles& files, const Json& config) {
  const Json name = value_in(config, "tokenizer_class");
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  const bool prefixes = value_in(config, "add_prefix_space") == true;
  if ((name.is_null() || name == "GPT2Tokenizer" || name == "GPT2TokenizerFast") && !prefixes)
    return bytes;
  refuse_tokenizer(files.path("vocab.json"),
                   "there is no tokenizer.json beside it, and gxp does not know how {}{} splits a "
                   "text",
                   write_json(name), prefixes ? " with add_prefix_space" : "");
}

// What a tokenizer.json would say.
Json json_of_merges(const CompanionFiles& files, const Json& config) {
  Json tokens = Json::array();
  const Json added = files.json("added_tokens.json");
  for (const auto& [content, id] : added.items())
    tokens.push_back({{"content", content}, {"id", id}, {"special", true}});
  Json made = {{"model",
                {{"type", "BPE"},
                 {"vocab", files.json("vocab.json")},
                 {"merges", merges_in(files.text("merges.txt"))}}},
               {"pre_tokenizer", pre_tokenizer_of(files, config)}};
  if (!tokens.empty()) made["added_tokens"] = std::move(tokens);
  return made;
}

// The text files that go along.
void add_files(const CompanionFiles& files, std::vector<GgufKey>& keys) {
  const bool is_whole = files.has(kTokenizerJson);
  for (const auto& [name, path] : files.paths()) {
    const bool is_same = is_whole && (name == "vocab.json" || name == "merges.txt");
    if (name == kTokenizerModel || is_same) continue;
    keys.emplace_back(name == kTokenizerJson ? kStoredJson : gguf_file_key(name), files.text(name));
  }
}

// The first of two keys of a name stays.
std::vector<GgufKey> without_repetition(std::vector<GgufKey> keys) {
  std::set<std::string> seen;
  std::erase_if(keys, [&](const GgufKey& key) { return !seen.insert(key.first).second; });
  return keys;
}

void append(std::vector<GgufKey> more, std::vector<GgufKey>& keys) {
  keys.insert(keys.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

}  // namespace

GgufTokenizer make_gguf_tokenizer(const std::vector<std::string>& companions,
                                  const std::string& config, int vocab_size) {
  const CompanionFiles files(companions);
  TokenizerJsons jsons{.config = files.json("tokenizer_config.json"),
                       .model = config.empty() ? Json() : parse_python_json(config, "config.json")};
  const bool has_json = files.has(kTokenizerJson), has_model = files.has(kTokenizerModel);
  const bool has_merges = files.has("vocab.json") && files.has("merges.txt");
  GgufTokenizer made;
  add_files(files, made.keys);
  if (!has_json && !has_model && !has_merges) return made;
  const char* const first = has_json ? kTokenizerJson : has_model ? kTokenizerModel : "vocab.json";
  jsons.file = files.path(first);
  if (has_json)
    jsons.tokenizer = files.json(kTokenizerJson);
  else if (!has_model)
    jsons.tokenizer = json_of_merges(files, jsons.config);
  const bool falls_back = value_in(value_in(jsons.tokenizer, "model"), "byte_fallback") == true;
  TokenTable table(jsons.file, vocab_size);
  std::vector<GgufKey> keys;
  if (has_model && (falls_back || !has_json)) {
    const std::vector<GgufKey> usual = sentencepiece_keys(files.path(kTokenizerModel), table);
    add_tokens(jsons, table);
    keys = table.keys("llama", "default");
    append(special_token_keys(jsons, files.text("chat_template.jinja"), table), keys);
    append(usual, keys);
  } else {
    keys = falls_back ? byte_fallback_keys(jsons, table) : byte_level_keys(jsons, table);
    append(special_token_keys(jsons, files.text("chat_template.jinja"), table), keys);
  }
  append(std::move(made.keys), keys);
  return {without_repetition(std::move(keys)), true, table.warnings()};
}

std::string gguf_file_key(std::string_view name) { return fmt::format("{}{}", kFileKeys, name); }

StoredTokenizer read_gguf_tokenizer(const GgufHeader& header) {
  StoredTokenizer tokenizer{
      .gguf_keys = header.tokenizer.encoded, .gguf_key_count = header.tokenizer.count, .files = {}};
  const auto take = [&](const std::string& key, const std::string& name) {
    const auto* const text = find_gguf_value<std::string>(header, key);
    if (text != nullptr) tokenizer.files[name] = *text;
  };
  for (const std::string_view name : companion_names())
    take(gguf_file_key(name), std::string(name));
  take(kStoredJson, kTokenizerJson);
  return tokenizer;
}

}  // namespace gxp
