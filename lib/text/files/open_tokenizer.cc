// Which files of a directory are its tokenizer.
#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/base/text_file.h"
#include "lib/text/files/sentencepiece_file.h"
#include "lib/text/files/tokenizer_json.h"
#include "lib/text/files/vocabulary_files.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTokenizerBytes = size_t{256} << 20;

// Classes that transformers 5 builds anew from the vocabulary, with these steps of their own.
struct RebuildingClass {
  std::string_view name;
  std::string_view steps;  // normalizer; pre_tokenizer
};
constexpr std::array kRebuilding = {
    RebuildingClass{"GPT2Tokenizer", "; ByteLevel"},
    RebuildingClass{"GPTNeoXTokenizer", "NFC; ByteLevel"},
    RebuildingClass{"Qwen2Tokenizer", "NFC; Split, ByteLevel"},
    RebuildingClass{"LlamaTokenizer", "; Metaspace"},
    RebuildingClass{"GemmaTokenizer", "Replace; Split"},
};

std::string types_of(const Json& block, const char* key, const std::string& where) {
  std::vector<std::string> types;
  for (const Json* step : steps_of(block, key, where)) types.push_back(type_in(*step, where));
  return joined(types, ", ");
}

bool has_other_prefix(const Json& file, const Json& config, const std::string& where) {
  const Json& prefix = member_or_null(config, "add_prefix_space");
  const auto steps = steps_of(member_or_null(file, "pre_tokenizer"), "pretokenizers", where);
  return prefix.is_boolean() && std::ranges::any_of(steps, [&](const Json* step) {
           return type_in(*step, where) == "ByteLevel" &&
                  prefix != (member_or_null(*step, "add_prefix_space") == true);
         });
}

// Says that transformers would not do as the file says, which gxp does.
void mention_rebuilding(const Json& file, const Json& config, const std::string& where) {
  const Json& name = member_or_null(config, "tokenizer_class");
  if (!name.is_string()) return;
  const std::string steps = types_of(member_or_null(file, "normalizer"), "normalizers", where) +
                            "; " +
                            types_of(member_or_null(file, "pre_tokenizer"), "pretokenizers", where);
  for (const RebuildingClass& row : kRebuilding) {
    const bool is_that = name == row.name || name == std::string(row.name) + "Fast";
    if (is_that && (steps != row.steps || has_other_prefix(file, config, where)))
      log_info(
          "{}: tokens are those of tokenizer.json; transformers 5 builds the class {} anew, "
          "with other steps",
          where, row.name);
  }
}

// Whether an added token is there, and strips and stands as `listed` says, if that says so.
bool has_added(const Json& file, const std::string& content, const Json& listed) {
  const Json& added = member_or_null(file, "added_tokens");
  const auto found = std::ranges::find_if(
      added, [&](const Json& token) { return member_or_null(token, "content") == content; });
  if (found == added.end()) return false;
  return std::ranges::all_of(std::array{"lstrip", "rstrip", "single_word"}, [&](const char* key) {
    const Json& flag = member_or_null(listed, key);
    return flag.is_null() || flag == (member_or_null(*found, key) == true);
  });
}

// A token, or a list or an object of them, each a text or an object with its content.
void require_added(const Json& file, const Json& tokens, const std::string& source,
                   const std::string& directory) {
  const Json& content = tokens.is_object() ? member_or_null(tokens, "content") : tokens;
  if (content.is_string()) {
    if (has_added(file, content.get<std::string>(), tokens)) return;
    fail(ErrorKind::kConfig,
         "open the tokenizer of {}: {} has the token '{}', which transformers adds, and "
         "the tokenizer itself lacks it or has it otherwise; write it anew: "
         "AutoTokenizer.from_pretrained(DIRECTORY).save_pretrained(DIRECTORY)",
         directory, source, content.get<std::string>());
  }
  if (tokens.is_array() || tokens.is_object())
    for (const Json& token : tokens) require_added(file, token, source, directory);
}

// The files beside the tokenizer have no tokens that it lacks.
void check_beside(const Json& file, const std::string& directory, const Json& config) {
  if (member_or_null(config, "split_special_tokens") == true)
    refuse_text("open the tokenizer of " + directory, "split_special_tokens is true");
  const Json more = read_if_there(directory, "added_tokens.json");
  if (more.is_object())
    for (const auto& [content, id] : more.items())
      require_added(file, content, "added_tokens.json", directory);
  const Json map = read_if_there(directory, "special_tokens_map.json");
  for (const char* key :
       {"added_tokens_decoder", "bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
        "cls_token", "mask_token", "additional_special_tokens", "extra_special_tokens"}) {
    require_added(file, member_or_null(config, key), "tokenizer_config.json", directory);
    require_added(file, member_or_null(map, key), "special_tokens_map.json", directory);
  }
}

std::shared_ptr<const Tokenizer> from_json(const Json& file, std::string_view content,
                                           const std::string& where) {
  TokenizerParts parts = parts_of_json(file, where);
  parts.digest = hash_hex(std::as_bytes(std::span(content.data(), content.size())));
  return make_bpe_tokenizer(std::move(parts));
}

// `directory`: "" for a file alone.
std::shared_ptr<const Tokenizer> open_json(const std::string& path, const std::string& directory,
                                           const Json& config) {
  const std::string content = read_text_file(path, kMaxTokenizerBytes, "tokenizer");
  const std::string where = "read " + path;
  const Json file = parse_json(content, path);
  auto tokenizer = from_json(file, content, where);
  if (!directory.empty()) check_beside(file, directory, config);
  mention_rebuilding(file, config, where);
  return tokenizer;
}

std::shared_ptr<const Tokenizer> open_ranks(const std::string& path, std::string_view content,
                                            const Json& config) {
  const fs::path name = fs::path(path).filename();
  auto rules =
      known_rank_rules(name.extension() == ".tiktoken" ? name.stem().string() : name.string(),
                       rank_file_size(content));
  if (!rules)
    fail(
        ErrorKind::kConfig,
        "read {}: a file of tiktoken does not say its pattern and special tokens, and gxp does not "
        "know those of this one; save the tokenizer as tokenizer.json",
        path);
  const Json tokens = listed_tokens(config, "read " + path);
  if (!tokens.is_null()) rules->special_tokens.clear();
  for (const Json& token : tokens) {
    const uint64_t id = to_unsigned(member(token, "id", path), path);
    rules->special_tokens.emplace(to_text(member(token, "content", path), path),
                                  int32_t(std::min<uint64_t>(id, INT32_MAX)));
  }
  return read_rank_file(content, path, *rules);
}

// tokenizer.model or NAME.tiktoken, by its content.
std::shared_ptr<const Tokenizer> open_model(const std::string& path, const Json& config) {
  const std::string content = read_text_file(path, kMaxTokenizerBytes, "tokenizer");
  return is_rank_file(content) ? open_ranks(path, content, config)
                               : read_sentencepiece(content, path);
}

std::shared_ptr<const Tokenizer> open_directory(const std::string& directory) {
  const auto has = [&](const char* name) {
    std::error_code error;
    return fs::exists(directory + "/" + name, error);
  };
  const Json config = read_if_there(directory, "tokenizer_config.json");
  if (has("tokenizer.json")) return open_json(directory + "/tokenizer.json", directory, config);
  if (has("vocab.json") && has("merges.txt")) {
    const Json file = json_of_vocabulary(directory);
    check_beside(file, directory, config);
    return from_json(file, write_json(file), "read " + directory);
  }
  if (has("tokenizer.model")) return open_model(directory + "/tokenizer.model", config);
  std::vector<std::string> ranks;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".tiktoken") ranks.push_back(entry->path().string());
  if (error) fail(ErrorKind::kIo, "open the tokenizer of {}: {}", directory, error.message());
  if (ranks.size() == 1) return open_model(ranks[0], config);
  fail(ErrorKind::kConfig,
       "open the tokenizer of {}: it has no tokenizer.json, no vocab.json with merges.txt, no "
       "tokenizer.model, and {} files NAME.tiktoken",
       directory, ranks.size());
}

}  // namespace

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return open_directory(path);
  if (path.ends_with(".json")) return open_json(path, "", {});
  return open_model(path, {});
}

}  // namespace gxp
