// From files of text and chats to the samples of a dataset.
#include <latch>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "lib/data/corpus/file_record.h"
#include "lib/data/corpus/tokenized_file.h"
#include "lib/data/dataset.h"
#include "tests/catch.h"
#include "tests/data/token_samples.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const std::string kTextData = GXP_TEST_DATA "/text/";

std::string tokenizer_sample(const std::string& name) { return kTextData + "tokenizers/" + name; }

json read_json(const std::string& path) { return json::parse(std::ifstream(path)); }

// A run whose files, and their caches, lie in a directory.
struct Corpus {
  TokenDirectory directory;
  RunConfig run;

  explicit Corpus(const std::string& tokenizer, int sequence = 8) {
    run.data.tokenizer = tokenizer;
    run.data.cache = directory / "tokens";
    run.data.sequence = sequence;
    run.model.vocab_size = 2000;
  }
  // A tokenizer with the chat template of a family, as a model's directory has them.
  void use_chat_family(const std::string& family, const json& expected) {
    const std::string model = directory / "model", chat = kTextData + "chat/" + family;
    fs::create_directory(model);
    fs::copy_file(tokenizer_sample(expected["tokenizer"]) + "/tokenizer.json",
                  model + "/tokenizer.json");
    fs::copy_file(chat + "/chat_template_generation.jinja", model + "/chat_template.jinja");
    json special = json::object();
    for (const char* name : {"bos_token", "eos_token"})
      if (expected[name].is_string()) special[name] = expected[name];
    std::ofstream(model + "/tokenizer_config.json") << special;
    run.data.tokenizer = model;
    run.data.end_token = "none";
  }
  [[nodiscard]] std::string write(const std::string& name, const std::vector<json>& records) const {
    std::string lines;
    for (const json& record : records) lines += record.dump() + "\n";
    return directory.write(name, lines);
  }
  [[nodiscard]] TokenizedFile tokenize(const std::string& path,
                                       DocumentPart part = DocumentPart::kAll) const {
    const DocumentEncoder encoder(run);
    return tokenize_file(path, {run, encoder, part});
  }
};

std::vector<int32_t> tokens_of(const TokenCache& cache, uint64_t document) {
  const uint64_t begin = cache.document_begin(document);
  std::vector<int32_t> tokens(cache.document_begin(document + 1) - begin);
  cache.read(begin, tokens);
  return tokens;
}

std::vector<json> random_texts(size_t count) {
  const std::vector<std::string> words = {"the ", "caf\xc3\xa9 ", "x = 3\n",
                                          "\t",   "42",           "\xe4\xb8\xad"};
  std::mt19937 random(3);
  std::vector<json> records;
  for (size_t i = 0; i < count; ++i) {
    std::string text;
    for (size_t k = random() % 40; k > 0; --k) text += words[random() % words.size()];
    records.push_back({{"text", text}});
  }
  return records;
}

}  // namespace

TEST_CASE("chats have the ids and the trained tokens that transformers has", "[data]") {
  const std::string family =
      GENERATE("chatml", "chatml_one_line", "gemma", "llama3", "mistral", "zephyr");
  const json expected = read_json(kTextData + "chat/" + family + "/expected.json");
  Corpus corpus("");
  corpus.use_chat_family(family, expected);
  const DocumentEncoder encoder(corpus.run);
  std::ifstream chats(kTextData + "chat/conversations.jsonl");
  size_t checked = 0;
  for (const json& golden : expected["conversations"]) {
    std::string line;
    REQUIRE(std::getline(chats, line));
    if (golden.contains("error") ||
        golden["mask"].get<std::string>().find('1') == std::string::npos)
      continue;  // the template refuses it, or nothing is trained
    CAPTURE(family, line);
    const DocumentView document{.text = line};
    const EncodedDocument chat = encoder.pack(DocumentForm::kChat, document, "read chats");
    std::string mask;
    for (const uint8_t trained : chat.trained) mask += trained != 0 ? '1' : '0';
    CHECK(chat.ids == golden["ids"].get<std::vector<int32_t>>());
    CHECK(mask == golden["mask"].get<std::string>());
    ++checked;
  }
  CHECK(checked >= 5);
}

TEST_CASE("a text is tokenized with what the tokenizer puts before it and an end", "[data]") {
  const auto [name, end, begins_with, ends_with] =
      GENERATE(table<std::string, std::string, std::string, std::string>(
          {{"gpt2", "", "", "<|endoftext|>"},
           {"gpt2", "none", "", ""},
           {"llama3", "", "<|begin_of_text|>", "<|end_of_text|>"},
           {"qwen", "<|im_end|>", "", "<|im_end|>"}}));
  CAPTURE(name, end);
  Corpus corpus(tokenizer_sample(name));
  corpus.run.data.end_token = end;
  const std::vector<json> records = random_texts(700);
  const TokenizedFile file = corpus.tokenize(corpus.write("a.jsonl", records));
  const auto tokenizer = open_tokenizer(tokenizer_sample(name));
  REQUIRE(file.cache.document_count() == records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    std::vector<int32_t> ids;
    if (!begins_with.empty()) ids.push_back(tokenizer->find(begins_with).value());
    tokenizer->encode(records[i]["text"].get<std::string>(), ids);
    if (!ends_with.empty()) ids.push_back(tokenizer->find(ends_with).value());
    REQUIRE(tokens_of(file.cache, i) == ids);
  }
}

TEST_CASE("a prompt counts as what precedes, its completion and the end as what is learned",
          "[data]") {
  const Corpus corpus(tokenizer_sample("gpt2"));
  const auto tokenizer = open_tokenizer(tokenizer_sample("gpt2"));
  const std::string path = GXP_TEST_DATA "/documents/prompt_completion.jsonl";
  const TokenizedFile file = corpus.tokenize(path);
  std::ifstream lines(path);
  uint64_t document = 0;
  for (std::string line; std::getline(lines, line); ++document) {
    const json pair = json::parse(line);
    std::vector<int32_t> ids;
    tokenizer->encode(pair["prompt"].get<std::string>(), ids);
    std::vector<uint8_t> expected(ids.size(), 0), trained;
    tokenizer->encode(pair["completion"].get<std::string>(), ids);  // apart, then joined
    ids.push_back(tokenizer->find("<|endoftext|>").value());
    expected.resize(ids.size(), 1);
    CHECK(tokens_of(file.cache, document) == ids);
    trained.resize(ids.size());
    file.cache.read_trained(file.cache.document_begin(document), trained);
    CHECK(trained == expected);
  }
  CHECK(document == file.cache.document_count());
}

TEST_CASE("processes that want the same text at a time share one cache of it", "[data]") {
  const Corpus corpus(tokenizer_sample("gpt2"));
  const std::string path = corpus.write("a.jsonl", random_texts(3000));
  std::latch start(4);
  std::vector<std::string> caches(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& cache : caches)
      threads.emplace_back([&] {
        start.arrive_and_wait();
        cache = corpus.tokenize(path).cache.path();
      });
  }
  CHECK(caches == std::vector<std::string>(4, caches[0]));
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(corpus.directory / "tokens"))
    count += entry.path().extension() == ".tokens" ? 1 : 0;
  CHECK(count == 1);
}

TEST_CASE("another text, end, part or tokenizer makes another cache", "[data]") {
  Corpus corpus(tokenizer_sample("gpt2"));
  corpus.run.data.validation_split = 0.25;
  const std::string path = corpus.write("a.jsonl", random_texts(100));
  std::map<std::string, std::string> caches;  // and what made them
  const auto add = [&](const std::string& what, DocumentPart part = DocumentPart::kAll) {
    CAPTURE(what);
    CHECK(caches.emplace(corpus.tokenize(path, part).cache.path(), what).second);
  };
  add("first");
  add("training", DocumentPart::kTraining);
  add("validation", DocumentPart::kValidation);
  corpus.run.data.end_token = "none";
  add("no end");
  corpus.run.data.tokenizer = tokenizer_sample("qwen");
  add("another tokenizer");
  const auto texts = random_texts(99);
  CHECK(corpus.write("a.jsonl", texts) == path);
  add("another text");
  CHECK(corpus.tokenize(path).cache.document_count() == texts.size());
}

TEST_CASE("each document is for training or for validation", "[data]") {
  Corpus corpus(tokenizer_sample("gpt2"));
  corpus.run.data.validation_split = 0.3;
  const std::string path = corpus.write("a.jsonl", random_texts(500));
  const TokenizedFile all = corpus.tokenize(path);
  const TokenizedFile parts[] = {corpus.tokenize(path, DocumentPart::kTraining),
                                 corpus.tokenize(path, DocumentPart::kValidation)};
  uint64_t next[] = {0, 0};
  for (uint64_t i = 0; i < all.cache.document_count(); ++i) {
    bool found = false;
    for (size_t p = 0; p < 2 && !found; ++p) {
      if (next[p] == parts[p].cache.document_count()) continue;
      found = tokens_of(parts[p].cache, next[p]) == tokens_of(all.cache, i);
      if (found) ++next[p];
    }
    REQUIRE(found);
  }
  CHECK(next[0] + next[1] == all.cache.document_count());
  CHECK(double(next[1]) / 500 == Approx(0.3).margin(0.1));
}

TEST_CASE("a chat's samples have its tokens, what is trained, and where it begins", "[data]") {
  constexpr int kSequence = 8;
  Corpus corpus("", kSequence);
  corpus.use_chat_family("chatml", read_json(kTextData + "chat/chatml/expected.json"));
  std::vector<json> chats;
  for (int i = 0; i < 40; ++i)
    chats.push_back({{"messages",
                      {{{"role", "user"}, {"content", std::string(size_t(i % 7), 'q')}},
                       {{"role", "assistant"}, {"content", "a" + std::to_string(i)}}}}});
  const std::string path = corpus.write("chats.jsonl", chats);
  const TokenizedFile file = corpus.tokenize(path);
  RunEncoder encoder(corpus.run);
  const Dataset data({path}, encoder);
  std::vector<int32_t> stream(file.cache.token_count()), begin_of(stream.size());
  std::vector<uint8_t> trained(stream.size());
  file.cache.read(0, stream);
  file.cache.read_trained(0, trained);
  for (uint64_t i = 0, at = 0; i < file.cache.document_count(); ++i)
    for (const auto end = file.cache.document_begin(i + 1), begin = at; at < end; ++at)
      begin_of[at] = int32_t(begin);
  REQUIRE(data.has_documents());
  REQUIRE(data.sample_count() == (stream.size() - 1) / kSequence);
  std::vector<int32_t> tokens(kSequence + 1), labels(tokens.size()), begins(tokens.size());
  for (uint64_t sample = 0; sample < data.sample_count(); ++sample) {
    data.read(sample, tokens, labels);
    data.read_document_begins(sample, begins);
    uint64_t targets = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const size_t at = size_t(sample) * kSequence + i;
      REQUIRE(tokens[i] == stream[at]);
      REQUIRE(labels[i] == (trained[at] != 0 ? stream[at] : kNoLabel));
      REQUIRE(begins[i] == std::max(0, begin_of[at] - int32_t(sample) * kSequence));
      targets += i > 0 ? trained[at] : 0;
    }
    REQUIRE(data.count_targets(sample) == targets);
  }
}

TEST_CASE("a broken record is named with its file and line", "[data]") {
  Corpus corpus("");
  corpus.use_chat_family("chatml", read_json(kTextData + "chat/chatml/expected.json"));
  const auto [record, why] = GENERATE(table<std::string, std::string>(
      {{R"({"messages": []})", "there are no messages"},
       {R"({"messages": [{"role": "user"}]})", "message 1 has no content"},
       {R"({"messages": [{"role": "user", "content": "x"}]})", "no token has a loss"},
       {R"({"text": "no chat"})", "no field messages, but the fields text"}}));
  const std::string good =
      R"({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]})";
  const std::string path = corpus.directory.write("a.jsonl", good + "\n" + record + "\n");
  const Caught caught = error_of([&] { (void)corpus.tokenize(path); });
  CHECK(caught.kind == ErrorKind::kCorrupt);
  CHECK(caught.says("read " + path + ", line 2: "));
  CHECK(caught.says(why));
}

TEST_CASE("a record keeps what was found for one stamp", "[data]") {
  const TokenDirectory dir;
  const std::string path = dir / "a.source";
  {
    FileRecord record(path, "reads a");
    CHECK(record.find("1:2").empty());
    record.note("1:2", "found");
    record.note("", "nothing");
  }
  {
    FileRecord record(path, "reads a");
    CHECK(record.find("1:2") == "found");
    for (const char* other : {"", "1", "1:2 ", "1:23"}) CHECK(record.find(other).empty());
    record.note("1:2:3", "new");
    CHECK(record.find("1:2").empty());
    CHECK(record.find("1:2:3") == "new");
  }
  dir.write("a.source", "1:2 cut");
  CHECK(FileRecord(path, "reads a").find("1:2").empty());
}

TEST_CASE("a file that has just been changed has no stamp yet", "[data]") {
  const TokenDirectory dir;
  CHECK(file_stamp(dir.write("a", "text")).empty());
  CHECK_FALSE(file_stamp("/bin/sh").empty());
  CHECK(file_stamp("/bin/sh") != file_stamp("/bin/ls"));
  CHECK(error_of([&] { file_stamp(dir / "none"); }).kind == ErrorKind::kIo);
}

}  // namespace gxp
