#include "lib/text/files/rank_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/text/pattern/known_patterns.h"
#include "lib/text/pipeline/bpe_tokenizer.h"

namespace gxp {
namespace {

constexpr int32_t kMaxRank = (1 << 21) - 1;
constexpr size_t kMaxTokenBytes = 4096;
constexpr size_t kLlama3Ranks = 128000;

// -1: no digit of base64.
int digit_of(char c) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t at = kDigits.find(c);
  return at == kDigits.npos ? -1 : int(at);
}

// Nothing: it is no base64, or stands for nothing.
std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  for (size_t at = 0; at < text.size(); at += 4) {
    uint32_t bits = 0;
    for (size_t i = at; i < at + 4; ++i) {
      const bool is_padding = i >= text.size() - padding;
      const int digit = is_padding ? 0 : digit_of(text[i]);
      if (digit < 0) return std::nullopt;
      bits = bits << 6 | uint32_t(digit);
    }
    for (const int shift : {16, 8, 0}) bytes += char(bits >> shift);
  }
  return bytes.substr(0, bytes.size() - padding);
}

struct RankLine {
  std::string token;
  int32_t rank = 0;
};

std::optional<RankLine> parse_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == line.npos || space > kMaxTokenBytes) return std::nullopt;
  const auto token = from_base64(line.substr(0, space));
  std::string_view digits = line.substr(space + 1);
  if (digits.ends_with('\r')) digits.remove_suffix(1);
  RankLine parsed;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), parsed.rank);
  if (!token || error != std::errc() || end != digits.data() + digits.size() || parsed.rank < 0 ||
      parsed.rank > kMaxRank)
    return std::nullopt;
  parsed.token = *token;
  return parsed;
}

// Calls for each line with its number; blank ones are none.
template <class Use>
void each_line(std::string_view content, Use use) {
  for (size_t number = 1; !content.empty(); ++number) {
    const std::string_view line = content.substr(0, content.find('\n'));
    content.remove_prefix(std::min(content.size(), line.size() + 1));
    if (!line.empty() && line != "\r") use(number, line);
  }
}

// All splits of each token into two: whichever comes about first, the token has one rank.
std::vector<BpeMerge> merges_of(const VocabularyIds& tokens) {
  std::vector<BpeMerge> merges;
  for (const auto& [text, id] : tokens)
    for (size_t at = 1; at < text.size(); ++at) {
      const auto left = tokens.find(std::string_view(text).substr(0, at));
      const auto right = tokens.find(std::string_view(text).substr(at));
      if (left != tokens.end() && right != tokens.end())
        merges.push_back({left->second, right->second, MergeResult{uint32_t(id), id}});
    }
  return merges;
}

void add_piece(DecoderRules& rules, int32_t id, const std::string& piece, bool is_special) {
  const auto at = size_t(id);
  if (at >= rules.exists.size()) {
    rules.pieces.resize(at + 1);
    rules.exists.resize(at + 1);
    rules.is_special.resize(at + 1);
  }
  rules.pieces[at] = piece;
  rules.exists[at] = true;
  rules.is_special[at] = is_special;
}

void add_special_tokens(const RankFileRules& rules, const std::string& file,
                        TokenizerParts& parts) {
  for (const auto& [name, id] : rules.special_tokens) {
    const bool is_taken =
        id < 0 || id > kMaxRank ||
        (size_t(id) < parts.decoder.exists.size() && parts.decoder.exists[size_t(id)]);
    if (is_taken || name.empty())
      fail(ErrorKind::kConfig, "read {}: the special token '{}' cannot have the id {}", file, name,
           id);
    parts.added.push_back({.content = name, .id = id, .is_normalized = false, .is_special = true});
    add_piece(parts.decoder, id, name, true);
    parts.ids.emplace(name, id);
  }
}

std::string rules_digest(std::string_view content, const RankFileRules& rules) {
  std::string all = "tiktoken\n" + rules.pattern + "\n";
  for (const auto& [name, id] : rules.special_tokens) all += fmt::format("{} {}\n", name, id);
  all += content;
  return hash_hex(std::as_bytes(std::span(all.data(), all.size())));
}

}  // namespace

bool is_rank_file(std::string_view content) {
  return parse_line(content.substr(0, std::min(content.find('\n'), kMaxTokenBytes))).has_value();
}

size_t rank_file_size(std::string_view content) {
  size_t count = 0;
  each_line(content, [&](size_t, std::string_view) { ++count; });
  return count;
}

std::optional<RankFileRules> known_rank_rules(std::string_view name, size_t count) {
  if (name == "r50k_base" || name == "p50k_base")
    return RankFileRules{std::string(kTiktokenGpt2Pattern), {{"<|endoftext|>", 50256}}};
  if (name == "cl100k_base")
    return RankFileRules{std::string(kCl100kPattern),
                         {{"<|endoftext|>", 100257},
                          {"<|fim_prefix|>", 100258},
                          {"<|fim_middle|>", 100259},
                          {"<|fim_suffix|>", 100260},
                          {"<|endofprompt|>", 100276}}};
  if (name == "o200k_base")
    return RankFileRules{std::string(kO200kPattern),
                         {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}};
  if (name != "tokenizer.model" || count != kLlama3Ranks) return std::nullopt;
  RankFileRules llama = {std::string(kLlama3Pattern), {}};
  constexpr std::array<std::string_view, 10> kNames = {"<|begin_of_text|>",
                                                       "<|end_of_text|>",
                                                       "<|reserved_special_token_0|>",
                                                       "<|reserved_special_token_1|>",
                                                       "<|reserved_special_token_2|>",
                                                       "<|reserved_special_token_3|>",
                                                       "<|start_header_id|>",
                                                       "<|end_header_id|>",
                                                       "<|reserved_special_token_4|>",
                                                       "<|eot_id|>"};
  auto id = int32_t(kLlama3Ranks);
  for (const std::string_view special : kNames) llama.special_tokens.emplace(special, id++);
  for (int reserved = 5; reserved < 251; ++reserved)
    llama.special_tokens.emplace(fmt::format("<|reserved_special_token_{}|>", reserved), id++);
  return llama;
}

std::shared_ptr<const Tokenizer> read_rank_file(std::string_view content, const std::string& file,
                                                const RankFileRules& rules) {
  TokenizerParts parts;
  parts.model.is_byte_level = true;
  parts.model.takes_whole_words = true;
  each_line(content, [&](size_t number, std::string_view line) {
    const auto parsed = parse_line(line);
    if (!parsed)
      fail(ErrorKind::kCorrupt, "read {}: line {} is no token in base64 and its rank", file,
           number);
    const auto at = size_t(parsed->rank);
    const bool is_new = parts.model.tokens.emplace(parsed->token, parsed->rank).second;
    if (!is_new || (at < parts.decoder.exists.size() && parts.decoder.exists[at]))
      fail(ErrorKind::kCorrupt, "read {}: line {} has a token or a rank a second time", file,
           number);
    add_piece(parts.decoder, parsed->rank, parsed->token, false);
  });
  for (int byte = 0; byte < 256; ++byte)
    if (!parts.model.tokens.contains(std::string(1, char(byte))))
      fail(ErrorKind::kCorrupt, "read {}: the byte {:#04x} is no token", file, byte);
  parts.ids = parts.model.tokens;
  parts.model.merges = merges_of(parts.model.tokens);
  add_special_tokens(rules, file, parts);
  parts.word_rules = find_word_rules(rules.pattern, PatternDialect::kFancyRegex);
  const std::string where = "read " + file;
  DelimiterFinder find = parts.word_rules != nullptr
                             ? find_known_words(*parts.word_rules)
                             : find_pattern(std::make_unique<TextPattern>(
                                   rules.pattern, PatternDialect::kFancyRegex, where));
  // tiktoken encodes what matches, and drops the rest.
  parts.pre_tokenizer.push_back(make_split({std::move(find), SplitBehavior::kRemoved, true}));
  parts.pre_tokenizer.push_back(make_byte_level(false, false));
  parts.digest = rules_digest(content, rules);
  return make_bpe_tokenizer(std::move(parts));
}

}  // namespace gxp
