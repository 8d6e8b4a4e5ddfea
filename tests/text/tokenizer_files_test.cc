// Which files are a tokenizer, what is refused of them by name, and tokens one at a time.
#include <filesystem>
#include <fstream>
#include <thread>

#include "lib/text/files/rank_file.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"
#include "tests/text/golden_tokenizers.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

void write(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

// A small tokenizer, with `patch` merged into it (RFC 7396).
std::string small_json(const std::string& patch) {
  Json file = Json::parse(R"({
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<unk>": 3}, "merges": ["a b"],
              "unk_token": "<unk>"},
    "added_tokens": [{"id": 4, "content": "<s>", "special": true}]})");
  file.merge_patch(Json::parse(patch));
  return file.dump();
}

std::shared_ptr<const Tokenizer> small_tokenizer(const std::string& patch) {
  const TemporaryDirectory directory;
  write(directory / "tokenizer.json", small_json(patch));
  return open_tokenizer(directory.path());
}

}  // namespace

TEST_CASE("a tokenizer that gxp does not compute is refused by name", "[text]") {
  const auto [family, words] = GENERATE(table<std::string, std::string>({
      {"refuse_dropout", "dropout is 0.1"},
      {"refuse_unigram", "its model is Unigram"},
      {"refuse_wordlevel", "its model is WordLevel"},
      {"refuse_wordpiece", "its pre_tokenizer is BertPreTokenizer"},
      {"sp_bpe_nfkc", "normalizes characters by a map"},
      {"sp_unigram", "is a unigram model"},
  }));
  const std::string folder = folder_of(family);
  const Caught caught = error_of([&] { open_tokenizer(folder); });
  CHECK(caught.kind == ErrorKind::kConfig);
  CHECK_THAT(caught.message, Catch::Matchers::Contains(words));
}

TEST_CASE("a block of tokenizer.json that is not as it must be is refused", "[text]") {
  const auto [patch, kind, words] = GENERATE(table<std::string, ErrorKind, std::string>({
      {R"({"extra": 1})", ErrorKind::kCorrupt, "the key 'extra' is unknown"},
      {R"({"version": "2.0"})", ErrorKind::kCorrupt, "version"},
      {R"({"model": null})", ErrorKind::kCorrupt, "'model' is missing"},
      {R"({"model": {"type": "Other"}})", ErrorKind::kConfig, "its model is Other"},
      {R"({"model": {"dropout": 0.5}})", ErrorKind::kConfig, "dropout"},
      {R"({"model": {"merges": ["a c"]}})", ErrorKind::kCorrupt, "'c', which is no token"},
      {R"({"model": {"merges": ["b a"]}})", ErrorKind::kCorrupt, "'ba', which is no token"},
      {R"({"model": {"merges": ["a b", ["a", "b"]]}})", ErrorKind::kCorrupt, "a string expected"},
      {R"({"model": {"merges": [["a", "b"], "a b"]}})", ErrorKind::kCorrupt, "no pair"},
      {R"({"model": {"merges": ["a b c"]}})", ErrorKind::kCorrupt, "not two tokens"},
      {R"({"model": {"vocab": {"c": 0}}})", ErrorKind::kCorrupt, "have one id, 0"},
      {R"({"model": {"vocab": {"c": 99999999}}})", ErrorKind::kCorrupt, "has the id 99999999"},
      {R"({"model": {"unk_token": "?"}})", ErrorKind::kCorrupt, "unk_token"},
      {R"({"model": {"byte_fallback": 1}})", ErrorKind::kCorrupt, "neither true nor false"},
      {R"({"added_tokens": [{"id": 5, "content": "<s>"}]})", ErrorKind::kConfig,
       "library gives it 4"},
      {R"({"added_tokens": [{"id": 4, "content": ""}]})", ErrorKind::kConfig, "without text"},
      {R"({"added_tokens": [{"id": 4, "content": "  ", "normalized": true}],
           "normalizer": {"type": "Strip", "strip_left": true, "strip_right": true}})",
       ErrorKind::kConfig, "'  ' is nothing when it is normalised"},
      {R"({"added_tokens": [{"id": 4, "content": "X", "normalized": true}, {"id": 5, "content": "x", "normalized": true}],
           "normalizer": {"type": "Lowercase"}})",
       ErrorKind::kConfig, "'X' and 'x' are one when normalised"},
      {R"({"normalizer": {"type": "Nmt"}})", ErrorKind::kConfig, "its normalizer is Nmt"},
      {R"({"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": ""}})",
       ErrorKind::kConfig, "empty pattern"},
      {R"({"normalizer": {"type": "Replace", "pattern": {"Regex": "a*|b"}, "content": "-"}})",
       ErrorKind::kConfig, "which may match nothing"},
      {R"({"pre_tokenizer": {"type": "UnicodeScripts"}})", ErrorKind::kConfig, "UnicodeScripts"},
      {R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\Ka"}, "behavior": "Isolated", "invert": false}})",
       ErrorKind::kConfig, "\\K"},
      {R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "isolated", "invert": false}})",
       ErrorKind::kCorrupt, "behavior 'isolated'"},
      {R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Isolated"}})",
       ErrorKind::kCorrupt, "'invert' is missing"},
      {R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true}})", ErrorKind::kCorrupt,
       "'trim_offsets' is missing"},
      {R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "_", "add_prefix_space": false, "prepend_scheme": "first"}})",
       ErrorKind::kCorrupt, "add_prefix_space"},
      {R"({"post_processor": {"type": "Other"}})", ErrorKind::kConfig,
       "its post_processor is Other"},
      {R"({"post_processor": {"type": "BertProcessing", "cls": ["x", 77], "sep": ["y", 0]}})",
       ErrorKind::kCorrupt, "the id 77"},
      {R"({"decoder": {"type": "CTC"}})", ErrorKind::kConfig, "its decoder is CTC"},
      {R"({"decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]}})",
       ErrorKind::kConfig, "ByteFallback"},
  }));
  CAPTURE(patch);
  const std::string tried = patch;
  const Caught caught = error_of([&] { small_tokenizer(tried); });
  CHECK(caught.kind == kind);
  CHECK_THAT(caught.message, Catch::Matchers::Contains(words));
}

TEST_CASE("files that only say more are read", "[text]") {
  const std::string patch = GENERATE(
      "{}", R"({"version": "1.0", "truncation": {"max_length": 1}, "padding": {"pad_id": 0}})",
      R"({"model": {"type": null}})", R"({"model": {"dropout": 0.0}})",
      R"({"model": {"merges": ["#version: 0.2", "a b"]}})",
      R"({"model": {"merges": [["a", "b"]]}})");
  const auto tokenizer = small_tokenizer(patch);
  CHECK(ids_of(*tokenizer, "ab<s>ac") == std::vector<int32_t>{2, 4, 0, 3});
  CHECK(tokenizer->find("<s>") == 4);
  CHECK(tokenizer->find("ab") == 2);
  CHECK_FALSE(tokenizer->find("x"));
  CHECK(tokenizer->vocabulary_end() == 5);
  CHECK(tokenizer->description() == "BPE, 5 tokens");
}

TEST_CASE("of two equal merges the later one counts", "[text]") {
  const auto tokenizer = small_tokenizer(
      R"({"model": {"vocab": {"aa": 4}, "merges": ["a b", "a a", "a b"]}, "added_tokens": []})");
  CHECK(ids_of(*tokenizer, "aab") == std::vector<int32_t>{4, 1});
}

// Expected: tokenizers 0.23.3.
TEST_CASE("white space that two added tokens take is the first one's", "[text]") {
  const auto [flags, text, expected] =
      GENERATE(table<std::string, std::string, std::vector<int32_t>>({
          {R"("rstrip": true)", "a \n\nb", {0, 3, 4, 4, 1}},
          {R"("lstrip": true)", "a \n\nb", {0, 4, 4, 1}},
          {R"("lstrip": true, "rstrip": true)", "a \n\nb", {0, 4, 1}},
          {R"("lstrip": true, "rstrip": true)", "a\n \n b", {0, 4, 1}},
      }));
  const auto tokenizer =
      small_tokenizer(R"({"added_tokens": [{"id": 4, "content": "\n", )" + flags + "}]}");
  CHECK(ids_of(*tokenizer, text) == expected);
}

TEST_CASE("what replaces several characters begins where the last one does", "[text]") {
  const auto [text, expected] = GENERATE(table<std::string, std::vector<int32_t>>(
      {{"b", {4, 1}}, {"cb", {3, 1}}, {"ccb", {4, 3, 3, 1}}}));
  const auto tokenizer = small_tokenizer(R"({
      "model": {"vocab": {"_": 4}}, "added_tokens": [],
      "normalizer": {"type": "Replace", "pattern": {"String": "cb"}, "content": "?b"},
      "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}})");
  CHECK(ids_of(*tokenizer, text) == expected);
}

TEST_CASE("a text whose added token begins behind its end is refused", "[text]") {
  const auto tokenizer = small_tokenizer(R"({"added_tokens": [
      {"id": 4, "content": "<s>", "rstrip": true}, {"id": 5, "content": "\n", "lstrip": true}]})");
  CHECK(ids_of(*tokenizer, "<s>\na") == std::vector<int32_t>{4, 0});
  CHECK(error_of([&] { ids_of(*tokenizer, "<s>\n\na"); }).says("belongs to the one before it"));
}

TEST_CASE("vocab.json with merges.txt is the tokenizer.json beside it", "[text]") {
  const TemporaryDirectory directory;
  for (const char* name :
       {"vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json"})
    fs::copy_file(folder_of("gpt2") + "/" + name, directory / name);
  const auto tokenizer = open_tokenizer(directory.path());
  const std::string text = content_of(kTextData + "corpora/code.txt") + "<|endoftext|>x";
  CHECK(ids_of(*tokenizer, text) == ids_of(*open_tokenizer(folder_of("gpt2")), text));
  CHECK(tokenizer->find("<|endoftext|>") == 1000);
  write(directory / "tokenizer_config.json", R"({"tokenizer_class": "OtherTokenizer"})");
  CHECK(error_of([&] { open_tokenizer(directory.path()); }).says("OtherTokenizer"));
}

TEST_CASE("tokens that only files beside tokenizer.json add are refused", "[text]") {
  const auto [name, content, lacks] = GENERATE(table<std::string, std::string, std::string>({
      {"tokenizer_config.json", R"({"eos_token": "<s>", "pad_token": null})", ""},
      {"tokenizer_config.json", R"({"eos_token": {"content": "</s>"}})", "'</s>'"},
      {"tokenizer_config.json", R"({"bos_token": "ab"})", "'ab'"},
      {"tokenizer_config.json", R"({"extra_special_tokens": {"x": "<x>"}})", "'<x>'"},
      {"tokenizer_config.json", R"({"added_tokens_decoder": {"4": {"content": "<s>"}}})", ""},
      {"tokenizer_config.json", R"({"added_tokens_decoder": {"5": {"content": "<x>"}}})", "'<x>'"},
      {"tokenizer_config.json",
       R"({"added_tokens_decoder": {"4": {"content": "<s>", "lstrip": true}}})", "'<s>'"},
      {"tokenizer_config.json", R"({"split_special_tokens": true})", "split_special_tokens"},
      {"special_tokens_map.json", R"({"additional_special_tokens": ["<s>", "<x>"]})", "'<x>'"},
      {"added_tokens.json", R"({"<s>": 4, "<x>": 5})", "'<x>'"},
  }));
  CAPTURE(content);
  const TemporaryDirectory directory;
  write(directory / "tokenizer.json", small_json("{}"));
  write(directory / name, content);
  const std::string message = error_of([&] { open_tokenizer(directory.path()); }).message;
  CHECK(message.empty() == lacks.empty());
  CHECK_THAT(message, Catch::Matchers::Contains(lacks));
}

TEST_CASE("the first of a directory's files counts, and none is an error", "[text]") {
  const TemporaryDirectory directory;
  CHECK(error_of([&] { open_tokenizer(directory.path()); }).kind == ErrorKind::kConfig);
  CHECK(error_of([&] { open_tokenizer(directory / "none"); }).kind == ErrorKind::kIo);
  fs::copy_file(folder_of("tiktoken") + "/ranks.tiktoken", directory / "own.tiktoken");
  CHECK(error_of([&] {
          open_tokenizer(directory.path());
        }).says("save the tokenizer as tokenizer.json"));
  fs::rename(directory / "own.tiktoken", directory / "cl100k_base.tiktoken");
  CHECK(open_tokenizer(directory.path())->find("<|endofprompt|>") == 100276);
  fs::copy_file(folder_of("sp_bpe") + "/tokenizer.model", directory / "tokenizer.model");
  CHECK(open_tokenizer(directory.path())->description() == "BPE with byte fallback, 1600 tokens");
  fs::copy_file(folder_of("gpt2") + "/tokenizer.json", directory / "tokenizer.json");
  const auto tokenizer = open_tokenizer(directory.path());
  CHECK(tokenizer->description() == "byte-level BPE, 1001 tokens");
  CHECK(tokenizer->digest() == open_tokenizer(directory / "tokenizer.json")->digest());
  CHECK(tokenizer->digest() != open_tokenizer(folder_of("llama3"))->digest());
}

TEST_CASE("a broken file of tiktoken is refused with its line", "[text]") {
  const RankFileRules rules = {"a", {}};
  const auto [content, words] = GENERATE(table<std::string, std::string>({
      {"IQ== 0\nx\n", "line 2"},
      {"IQ== 0\nIQ== 1\n", "line 2 has a token or a rank a second time"},
      {"IQ== 0\nIg== 0\n", "line 2 has a token or a rank a second time"},
      {"IQ== -1\n", "line 1"},
      {"IQ=! 1\n", "line 1"},
      {"IQ== 0\n", "is no token"},
  }));
  const std::string file = content;
  CHECK_THAT(error_of([&] { read_rank_file(file, "F", rules); }).message,
             Catch::Matchers::Contains(words));
}

TEST_CASE("threads may encode at once", "[text]") {
  const auto tokenizer = open_tokenizer(folder_of("qwen"));
  const std::string text = content_of(kTextData + "corpora/scripts.bin");
  const std::vector<int32_t> expected = ids_of(*tokenizer, text);
  std::array<std::vector<int32_t>, 4> ids;
  {
    std::vector<std::jthread> threads;
    for (auto& own : ids) threads.emplace_back([&] { own = ids_of(*tokenizer, text); });
  }
  for (const auto& own : ids) CHECK(own == expected);
}

TEST_CASE("a long word is merged as a short one, and in little time", "[text]") {
  const auto tokenizer =
      small_tokenizer(R"({"model": {"vocab": {"abab": 5}, "merges": ["a b", "ab ab"]},
      "added_tokens": []})");
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "ab";
  const std::vector<int32_t> ids = ids_of(*tokenizer, text);
  CHECK(ids == std::vector<int32_t>(100'000, 5));
}

}  // namespace gxp
