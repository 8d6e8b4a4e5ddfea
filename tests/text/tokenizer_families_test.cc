// Every tokenizer of tests/data/text against the library that it comes from.
#include <algorithm>
#include <random>

#include "lib/text/files/rank_file.h"
#include "tests/catch.h"
#include "tests/text/golden_tokenizers.h"

namespace gxp {
namespace {

const std::vector<std::string> kFamilies = {
    "added_flags",   "bpe_prefix_unk",   "bytelevel_gap",   "clip_like",
    "deepseek_v3",   "falcon",           "fallback_gap",    "gemma",
    "gpt2",          "gpt_neox",         "llama2_legacy",   "llama3",
    "llama3_merges", "metaspace_always", "metaspace_first", "qwen",
    "roberta_like",  "starcoder",        "tekken",          "sp_bpe",
    "sp_bpe_nodummy"};

// The library takes the last character of this added token for a byte.
std::string decode_as_library(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                              bool skip_special = false) {
  const std::optional<int32_t> accented = tokenizer.find("caf\u00e9");
  const auto decoder = tokenizer.decoder(skip_special);
  std::string text;
  for (const int32_t id : ids) {
    const std::string piece = decoder->put(id);
    text += id == accented ? "caf\xe9" : piece;
  }
  return text;
}

// Bytes that fall back and are not UTF-8 are a U+FFFD each there.
std::string each_replaced(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += uint8_t(byte) < 0x80 ? std::string(1, byte) : "\ufffd";
  return text;
}

void check_decoding(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, const Json& item) {
  const std::string expected = item["decoded"];
  const std::string decoded = decode_as_library(tokenizer, ids);
  CHECK((with_valid_utf8(decoded) == expected || each_replaced(decoded) == expected));
  if (item.contains("decoded_skip_special"))
    CHECK(with_valid_utf8(decode_as_library(tokenizer, ids, true)) == item["decoded_skip_special"]);
}

void check_spans(const Tokenizer& tokenizer, const std::string& text,
                 const std::vector<int32_t>& expected) {
  std::vector<int32_t> ids;
  std::vector<ByteSpan> spans;
  tokenizer.encode(text, ids, &spans);
  CHECK(ids == expected);
  REQUIRE(spans.size() == ids.size());
  CHECK(std::ranges::all_of(
      spans, [&](ByteSpan span) { return span.begin <= span.end && span.end <= text.size(); }));
}

}  // namespace

TEST_CASE("ids of whole corpora are the library's, and decode to the same text", "[text]") {
  const std::string family = GENERATE(from_range(kFamilies));
  CAPTURE(family);
  const auto tokenizer = open_tokenizer(folder_of(family));
  const Json expected = json_at(folder_of(family) + "/expected.json");
  for (const auto& [name, corpus] : expected["corpora"].items()) {
    CAPTURE(name);
    const std::vector<int32_t> ids = ids_of(*tokenizer, corpus_text(corpus));
    CHECK(ids.size() == corpus["tokens"]);
    CHECK(sha256_of(ids) == corpus["ids_sha256"]);
    CHECK(sha256_of(with_valid_utf8(decode_as_library(*tokenizer, ids))) ==
          corpus["decoded_sha256"]);
    if (!corpus.contains("prefix")) continue;
    CHECK(tokenizer->prefix() == corpus["prefix"].get<std::vector<int32_t>>());
    CHECK(tokenizer->suffix() == corpus["suffix"].get<std::vector<int32_t>>());
  }
  if (expected.contains("max_id"))
    CHECK(tokenizer->vocabulary_end() == expected["max_id"].get<int>() + 1);
}

TEST_CASE("ids of short texts are the library's, and decode to the same text", "[text]") {
  const std::string family = GENERATE(from_range(kFamilies));
  CAPTURE(family);
  const auto tokenizer = open_tokenizer(folder_of(family));
  for (const Json& item : json_at(folder_of(family) + "/strings.json")) {
    const std::string text = item["text"];
    const auto expected = item["ids"].get<std::vector<int32_t>>();
    CAPTURE(text);
    CHECK(ids_of(*tokenizer, text) == expected);
    check_decoding(*tokenizer, expected, item);
    check_spans(*tokenizer, text, expected);
  }
}

TEST_CASE("tokenizers of bytes give bytes back that are not UTF-8", "[text]") {
  const std::string family = GENERATE(from_range(kFamilies));
  CAPTURE(family);
  const Json corpus = json_at(folder_of(family) + "/expected.json")["corpora"]["scripts"];
  if (corpus["decoded_is_input"] != true) return;
  const auto tokenizer = open_tokenizer(folder_of(family));
  if (!tokenizer->description().starts_with("byte-level") &&
      !tokenizer->description().ends_with("byte fallback"))
    return;
  const std::string bytes = content_of(kTextData + "corpora/scripts.bin");
  REQUIRE_FALSE(is_valid_utf8(bytes));
  CHECK(tokenizer->decode(ids_of(*tokenizer, bytes)) == bytes);
  std::vector<int32_t> ids;
  std::vector<ByteSpan> spans;
  tokenizer->encode(bytes, ids, &spans);
  CHECK(ids == ids_of(*tokenizer, bytes));
}

TEST_CASE("ids of a tiktoken file are tiktoken's", "[text]") {
  const std::string file = folder_of("tiktoken") + "/ranks.tiktoken";
  const Json about = json_at(folder_of("tiktoken") + "/about.json");
  RankFileRules rules = {about["pattern"], about["special_tokens"]};
  const auto with_special = read_rank_file(content_of(file), file, rules);
  rules.special_tokens.clear();
  const auto plain = read_rank_file(content_of(file), file, rules);
  const Json expected = json_at(folder_of("tiktoken") + "/expected.json");
  for (const auto& [name, corpus] : expected["corpora"].items())
    CHECK(sha256_of(ids_of(*plain, corpus_text(corpus))) == corpus["ids_sha256"]);
  for (const Json& item : json_at(folder_of("tiktoken") + "/strings.json")) {
    const std::string text = item["text"];
    CAPTURE(text);
    CHECK(ids_of(*plain, text) == item["ids"].get<std::vector<int32_t>>());
    const std::vector<int32_t> ids = ids_of(*with_special, text);
    CHECK(ids == item["ids_allowed_special"].get<std::vector<int32_t>>());
    CHECK(with_special->decode(ids) == text);
  }
}

TEST_CASE("several threads give a large text the ids that one gives", "[text]") {
  const std::string name = GENERATE("gpt2", "llama3", "qwen", "tekken");
  CAPTURE(name);
  const auto tokenizer = open_tokenizer(folder_of(name));
  const std::string corpora[] = {
      with_valid_utf8(content_of(kTextData + "corpora/scripts.bin").substr(0, 100'000)),
      content_of(kTextData + "corpora/code.txt").substr(0, 100'000)};
  std::string text;
  std::mt19937 random(9);
  while (text.size() < size_t{4} << 20) {
    text += corpora[random() % 2];
    const size_t length = random() % 200'000;  // so that parts begin in runs, too
    for (const char* run : {" ", "7", "\n", "a b", "\u00e9", "'s"})
      if (random() % 3 == 0)
        for (size_t bytes = 0; bytes < length; bytes += std::string_view(run).size()) text += run;
  }
  const std::vector<int32_t> expected = ids_of(*tokenizer, text);
  for (const int threads : {2, 4, 64}) {
    std::vector<int32_t> ids = {7};  // is kept
    tokenizer->encode_large(text, threads, ids);
    CHECK(ids.front() == 7);
    CHECK(std::equal(ids.begin() + 1, ids.end(), expected.begin(), expected.end()));
  }
}

}  // namespace gxp
