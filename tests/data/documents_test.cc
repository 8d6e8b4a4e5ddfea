// What documents the files of tests/data/documents hold, by the libraries that wrote them.
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lib/data/documents/document_batch.h"
#include "lib/data/documents/open_documents.h"
#include "lib/data/files/token_file.h"
#include "tests/catch.h"
#include "tests/data/token_samples.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

using Texts = std::vector<std::string>;
using Tokens = std::vector<int32_t>;

std::string sample(const std::string& name) { return GXP_TEST_DATA "/documents/" + name; }

const nlohmann::json& expected() {
  static const auto kExpected = nlohmann::json::parse(std::ifstream(sample("expected.json")));
  return kExpected;
}

// The first `count` of the texts that the samples hold.
Texts expected_texts(size_t count) {
  auto texts = expected()["texts"].get<Texts>();
  texts.resize(count);
  return texts;
}

Texts texts_of(DocumentReader& reader) {
  Texts texts;
  while (const auto document = reader.next()) {
    REQUIRE(document->number == texts.size());
    texts.emplace_back(document->text);
  }
  CHECK(!reader.next());
  return texts;
}

Texts texts_of(const std::string& path, const DocumentOptions& options = {}) {
  return texts_of(*open_documents(path, options));
}

std::vector<Tokens> tokens_of(const std::string& path, const DocumentOptions& options) {
  std::vector<Tokens> documents;
  const auto reader = open_documents(path, options);
  REQUIRE(reader->form() == DocumentForm::kTokens);
  while (const auto document = reader->next())
    documents.emplace_back(document->tokens.begin(), document->tokens.end());
  return documents;
}

Caught refusal_of(const std::string& path, const DocumentOptions& options = {}) {
  return error_of([&] {
    const auto reader = open_documents(path, options);
    while (reader->next()) continue;
  });
}

}  // namespace

TEST_CASE("JSON lines hold their texts, however they are written and compressed", "[data]") {
  const auto [name, field, kind, count] =
      GENERATE(table<std::string, std::string, std::string, size_t>(
          {{"text.jsonl", "", "JSON lines, field text", 24},
           {"text.jsonl", "text", "JSON lines, field text", 24},
           {"text_ascii.jsonl", "", "JSON lines, field text", 24},
           {"text_no_final_newline.jsonl", "", "JSON lines, field text", 24},
           {"text_blank_lines.jsonl", "", "JSON lines, field text", 24},
           {"text_bom.jsonl", "", "JSON lines, field text", 24},
           {"text_crlf.jsonl", "", "JSON lines, field text", 24},
           {"nested.jsonl", "doc.body.text", "JSON lines, field doc.body.text", 24},
           {"other_field.jsonl", "content", "JSON lines, field content", 24},
           {"text.jsonl.gz", "", "JSON lines, field text, gzip", 24},
           {"text_two_members.jsonl.gz", "", "JSON lines, field text, gzip", 24},
           {"text_no_suffix_gz", "", "JSON lines, field text, gzip", 24},
           {"text.jsonl.zst", "", "JSON lines, field text, zstd", 24},
           {"text_frames.jsonl.zst", "", "JSON lines, field text, zstd", 24},
           {"array.json", "", "JSON array, field text", 4}}));
  CAPTURE(name);
  const auto reader = open_documents(sample(name), {.field = field});
  CHECK(reader->kind() == kind);
  CHECK(reader->form() == DocumentForm::kText);
  CHECK(texts_of(*reader) == expected_texts(count));
}

TEST_CASE("escapes become characters, and of a name that is there twice the last counts",
          "[data]") {
  using namespace std::string_literals;
  CHECK(texts_of(sample("escapes.jsonl")) ==
        Texts{"\xf0\x9f\x98\x80 A / \b\f\n\r\t \0 \xef\xbf\xbd"s, "second", "escaped key"});
}

TEST_CASE("a line of 10 MB is a document between others", "[data]") {
  const TokenDirectory dir;
  std::string big;
  while (big.size() < 10'000'000) big += "delta \xc3\xa9 0123456789 " + std::to_string(big.size());
  const std::string path = dir.write(
      "a.jsonl", "{\"text\": \"small\"}\n{\"text\": \"" + big + "\"}\n{\"text\": \"last\"}\n");
  CHECK(texts_of(path) == Texts{"small", big, "last"});
}

TEST_CASE("a chat is handed on as the text of its object", "[data]") {
  const auto [name, words, count] = GENERATE(table<std::string, std::string, size_t>(
      {{"messages.jsonl", "chats, messages, JSON lines", 9},
       {"content_parts.jsonl", "chats, messages, JSON lines", 9},
       {"sharegpt.jsonl", "chats, conversations, JSON lines", 9},
       {"conversations_role_content.jsonl", "chats, conversations, JSON lines", 9},
       {"prompt_completion.jsonl", "chats, prompt and completion, JSON lines", 7},
       {"prompt_completion_chat.jsonl", "chats, prompt and completion, JSON lines", 9},
       {"alpaca.jsonl", "chats, Alpaca, JSON lines", 6},
       {"messages_bad.jsonl", "chats, messages, JSON lines", 6}}));
  const auto reader = open_documents(sample(name));
  CHECK(reader->kind() == words);
  CHECK(reader->form() == DocumentForm::kChat);
  Texts lines;
  std::ifstream file(sample(name));
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  REQUIRE(lines.size() == count);
  CHECK(texts_of(*reader) == lines);
}

TEST_CASE("what holds a text is chosen by data.field where a record has two", "[data]") {
  const TokenDirectory dir;
  const std::string chat = R"({"messages": [{"role": "user"}], "text": "t", "prompt": "p"})";
  const std::string alpaca = R"({"instruction": "i", "output": "o", "text": "t"})";
  const std::string chats = dir.write("a.jsonl", chat), alpacas = dir.write("b.jsonl", alpaca);
  CHECK(refusal_of(chats).says("both field text and messages"));
  CHECK(refusal_of(chats).kind == ErrorKind::kConfig);
  CHECK(refusal_of(alpacas).says("data.field = \"instruction+output\""));
  CHECK(texts_of(chats, {.field = "text"}) == Texts{"t"});
  CHECK(texts_of(chats, {.field = "messages"}) == Texts{chat});
  CHECK(texts_of(alpacas, {.field = "instruction+output"}) == Texts{alpaca});
  CHECK(texts_of(alpacas, {.field = "output"}) == Texts{"o"});
}

TEST_CASE("an array's elements are documents, over however many lines", "[data]") {
  const TokenDirectory dir;
  const auto [content, texts] = GENERATE(table<std::string, Texts>(
      {{R"([{"text": "a"}])", {"a"}},
       {"\n [ {\"text\":\n \"a,]}\\\"\"\n} ,{\"text\": \"\", \"x\": [[{}], [1, 2]]}\n]\n ",
        {"a,]}\"", ""}}}));
  CHECK(texts_of(dir.write("a.json", content)) == texts);
  CHECK(texts_of(dir.write("a.txt", content)) == texts);
}

TEST_CASE("text is one document, or what lies between separators", "[data]") {
  const TokenDirectory dir;
  const auto [content, separator, texts] = GENERATE(
      table<std::string, std::string, Texts>({{"a\r\nb\n", "", {"a\r\nb\n"}},
                                              {"\xef\xbb\xbf"
                                               "a",
                                               "",
                                               {"a"}},
                                              {"a<s>b<s>", "<s>", {"a", "b"}},
                                              {"<s>a<s><s>b\n", "<s>", {"", "a", "", "b\n"}},
                                              {"a\n\n\nb", "\n\n", {"a", "\nb"}},
                                              {"no JSON: {", "", {"no JSON: {"}},
                                              {"{no JSON}", "", {"{no JSON}"}},
                                              {"[1] Smith", "", {"[1] Smith"}}}));
  CHECK(texts_of(dir.write("a.txt", content), {.separator = separator}) == texts);
  const std::string json = dir.write("a.jsonl", "{\"text\": 1}\n");
  CHECK(texts_of(json, {.format = DataFormat::kText}) == Texts{"{\"text\": 1}\n"});
  CHECK(open_documents(sample("text.txt.gz"))->kind() == "text, gzip");
  CHECK(texts_of(sample("text.txt.gz")).size() == 1);
}

TEST_CASE("a separator is found wherever the pieces that are read end", "[data]") {
  const TokenDirectory dir;
  const size_t length = (size_t{1} << 20) - 8 + GENERATE(range(0, 16));
  const std::string first(length, 'a');
  CHECK(texts_of(dir.write("a.txt", first + "<|end|>" + "b"), {.separator = "<|end|>"}) ==
        Texts{first, "b"});
}

TEST_CASE("streams of ids end their documents behind the end token", "[data]") {
  const std::string name =
      GENERATE("tokens_u2.npy", "tokens_i4.npy", "tokens_i8.npy", "tokens_u4.npy", "tokens_v2.npy",
               "tokens_v3.npy", "llmc_gpt2.bin", "llmc_llama3.bin", "nanogpt_train.bin");
  CAPTURE(name);
  const auto documents =
      tokens_of(sample(name), {.format = DataFormat::kNanoGpt, .end_token = 1000});
  std::vector<size_t> lengths;
  for (const Tokens& document : documents) {
    lengths.push_back(document.size() - 1);
    CHECK(document.back() == 1000);
  }
  CHECK(lengths == expected()["tokens_per_document"].get<std::vector<size_t>>());
  const auto whole = tokens_of(sample(name), {.format = DataFormat::kNanoGpt});
  REQUIRE(whole.size() == 1);
  const auto first = expected()["first_ids"].get<Tokens>();
  CHECK(Tokens(whole[0].begin(), whole[0].begin() + std::ptrdiff_t(first.size())) == first);
}

TEST_CASE("Megatron's documents are those of its index, by either name", "[data]") {
  const auto [name, lengths] = GENERATE(table<std::string, std::vector<size_t>>(
      {{"megatron_u2", {153, 112, 30,  113, 2,   16, 73, 73,  26, 219, 12, 106,
                        89,  121, 374, 138, 245, 39, 90, 259, 34, 278, 54}},
       {"megatron_i4_sentences", {265, 145, 188}}}));
  for (const char* const end : {".bin", ".idx"}) {
    std::vector<size_t> found;
    for (const Tokens& document : tokens_of(sample(name + end), {}))
      found.push_back(document.size());
    CHECK(found == lengths);
  }
  CHECK(open_documents(sample(name + ".idx"))->kind() == "Megatron's indexed tokens");
}

TEST_CASE("rows are documents, with their labels", "[data]") {
  const auto rows = tokens_of(sample("tokens_2d_i4.npy"), {});
  CHECK(rows.size() == 83);
  CHECK(rows[0] == Tokens(expected()["first_ids"].begin(), expected()["first_ids"].end()));
  const TokenDirectory dir;
  const std::string bare = dir.write("a.i32", counting_tokens(6));
  CHECK(tokens_of(bare, {.row_tokens = 3}) == std::vector<Tokens>{{0, 1, 2}, {3, 4, 5}});
  CHECK(refusal_of(bare, {.row_tokens = 4}).says("6 tokens are not whole rows of 4"));
  const auto labelled = open_documents(
      dir.write_numpy("a.npy", "<i4", "(2, 2, 2)", {7, 8, 7, kNoLabel, 5, 6, kNoLabel, 6}, 1));
  labelled->next();
  const auto row = labelled->next();
  CHECK(Tokens(row->tokens.begin(), row->tokens.end()) == Tokens{5, 6});
  CHECK(Tokens(row->labels.begin(), row->labels.end()) == Tokens{kNoLabel, 6});
}

TEST_CASE("what cannot be read is refused by name, with its line or the command that converts it",
          "[data]") {
  const auto [name, words] = GENERATE(table<std::string, std::string>(
      {{"missing_field.jsonl", ", line 2: no field text, but the fields other"},
       {"bad_line.jsonl", ", line 2: not JSON: a string without an end"},
       {"truncated.jsonl", ", line 16: the line is cut off"},
       {"lone_surrogate.jsonl", ", line 1: not text: a string has"},
       {"invalid_utf8.jsonl", ", line 1: not UTF-8 (byte 14)"},
       {"pretty.json", "one object over several lines must be written in one"},
       {"empty.jsonl", "is empty"},
       {"other_field.jsonl", "the fields content, lang"},
       {"plain_text_named.jsonl", "does not begin with an object"},
       {"bad_crc.jsonl.gz", "CRC"},
       {"cut.jsonl.gz", "gzip stream ends early"},
       {"cut.jsonl.zst", "zstd frame ends early"},
       {"chosen_rejected.jsonl", "preference pair, with the fields prompt, chosen, rejected"},
       {"nanogpt_train.bin", "data.format = \"nanogpt\""},
       {"tokens_be_i4.npy", "'>i4'"},
       {"tokens_2d_fortran_i4.npy", "column-major"},
       {"tokens_f4.npy", "'<f4'"},
       {"tokens_scalar.npy", "0 dimensions"},
       {"tokens_empty.npy", "no tokens"},
       {"tokens_negative_i4.npy", "token -100 at position 2"},
       {"tokens_bool.npy", "'|b1'"},
       {"object.npy", "objects of Python in a pickle"},
       {"tokens_cut.npy", "bytes follow"},
       {"megatron_bad_magic.idx", "older kind (TNTIDX)"},
       {"megatron_bad_magic.bin", "older kind (TNTIDX)"},
       {"megatron_short.idx", "shorter than its index says"},
       {"megatron_alone.bin", "without the header of llm.c's shards"},
       {"llmc_wrong_count.bin", "the header declares"},
       {"llmc_version2.bin", "version 2"},
       {"llmc_eval.bin", "an evaluation set of llm.c"},
       {"tiny.parquet", "pandas.read_parquet("},
       {"arrow_stream.arrow", "an Arrow table"},
       {"archive.zip", "a zip archive"},
       {"table.csv", "columns gxp does not understand"},
       {"utf16.txt", "iconv -f UTF-16 -t UTF-8"}}));
  CAPTURE(name);
  const auto [kind, message] = refusal_of(sample(name));
  const std::string stem = name.substr(0, name.rfind('.'));
  REQUIRE(kind.has_value());
  CHECK((kind == ErrorKind::kCorrupt || kind == ErrorKind::kConfig));
  CHECK_THAT(message, Catch::Matchers::Contains(words) && Catch::Matchers::Contains(stem));
}

TEST_CASE("each kind of broken line is named", "[data]") {
  const TokenDirectory dir;
  const auto [line, words] = GENERATE(table<std::string, std::string>(
      {{"{\"text\": \"a\"} trailing", "not JSON"},
       {"not json", "not JSON"},
       {"{\"text\": \"raw\ttab\"}", "a control character in a string"},
       {"[1,2]", "JSON, but a list, not an object"},
       {"\"just a string\"", "JSON, but a string, not an object"},
       {"{\"text\": null}", "field text is null, not a string"},
       {"{\"text\": 5}", "field text is a number, not a string"},
       {"{\"text\": [\"a\"]}", "field text is a list, not a string"},
       {"{}", "no field text, but no field"},
       {"{\"text\": \"a\", \"n\": 1.5.2}", "not JSON"},
       {"{\"text\": \"a\", \"n\": 1-2}", "not JSON"},
       {"{\"text\": \"a\", \"n\": 01}", "not JSON"},
       {"{\"text\": \"a\", \"n\": NaN}", "not JSON"},
       {"{\"text\": \"\\udc00\"}", "half of a surrogate pair"},
       {"{\"text\": \"\\ud800\\u0041\"}", "half of a surrogate pair"},
       {std::string(2000, '['), "not JSON"},
       {"{\"text\": \"a\"", "not JSON"}}));
  CAPTURE(line);
  const std::string path = dir.write("a.jsonl", "{\"text\": \"\"}\n\n" + line + "\n{}");
  CHECK(refusal_of(path).kind == ErrorKind::kCorrupt);
  CHECK_THAT(refusal_of(path).message,
             Catch::Matchers::Contains("a.jsonl, line 3: ") && Catch::Matchers::Contains(words));
}

TEST_CASE("a broken array is named with its line", "[data]") {
  const TokenDirectory dir;
  const auto [content, words] = GENERATE(table<std::string, std::string>(
      {{"[{\"text\": \"a\"},\n{\"text\": \"b\"", "line 2: the array has no end"},
       {"[{\"text\": \"a\"}\n", "line 2: the array has no end"},
       {"[{\"text\": \"a\"}\n{\"text\": \"b\"}]", "line 2: no comma"},
       {"[{\"text\": \"a\"},\n]", "line 2: the array ends behind a comma"},
       {"[{\"text\": \"a\"}]\n[]", "line 2: something follows"},
       {"[{\"text\": \"a\"},\n5]", "line 2: JSON, but a number"},
       {"[{\"text\": \"a\"},\n,5]", "line 2: not JSON"},
       {"[{\"text\": \"a\"},\n{\"text\" 5}]", "line 2: not JSON"}}));
  CHECK_THAT(refusal_of(dir.write("a.json", content)).message, Catch::Matchers::Contains(words));
}

TEST_CASE("numbers of any size are JSON", "[data]") {
  const TokenDirectory dir;
  const std::string number = GENERATE("123456789012345678901234567890", "-1e999", "1.5E+400", "-0");
  const std::string line =
      R"({"a": [)" + number + R"(], "text": "1e999 \" 5", "b":)" + number + "}";
  CHECK(texts_of(dir.write("a.jsonl", line)) == Texts{"1e999 \" 5"});
}

TEST_CASE("what a compressed file holds must be text", "[data]") {
  const TokenDirectory dir;
  const auto gzip = [&](const std::string& name, const std::string& from) {
    std::string command = "gzip -c '" + from + "' > '" + (dir / name) + "'";
    REQUIRE(std::system(command.c_str()) == 0);
    return dir / name;
  };
  CHECK(refusal_of(gzip("a.gz", sample("text.jsonl.gz"))).says("compressed again"));
  CHECK(refusal_of(gzip("b.gz", sample("tokens_u2.npy"))).says("no text, but .npy"));
  CHECK(refusal_of(gzip("c.gz", sample("tiny.parquet"))).says("a Parquet table"));
  CHECK(refusal_of(gzip("d.csv.gz", sample("table.csv"))).says("named .csv"));
  CHECK(refusal_of(gzip("e.gz", sample("megatron_alone.bin"))).says("not text"));
  CHECK(refusal_of(gzip("f.gz", sample("empty.jsonl"))).says("it holds nothing"));
}

TEST_CASE("batches hold the documents that the reader gives", "[data]") {
  const auto [name, bytes] = GENERATE(table<std::string, size_t>({{"text.jsonl", 1},
                                                                  {"text.jsonl", 500},
                                                                  {"text.jsonl", 1 << 20},
                                                                  {"tokens_2d_i4.npy", 1000}}));
  const auto batched = open_documents(sample(name)), plain = open_documents(sample(name));
  uint64_t count = 0;
  for (auto batch = DocumentBatch::read(*batched, bytes); !batch.empty();
       batch = DocumentBatch::read(*batched, bytes)) {
    for (size_t i = 0; i < batch.size(); ++i, ++count) {
      const auto document = plain->next();
      REQUIRE(document.has_value());
      REQUIRE(batch[i].text == document->text);
      REQUIRE(std::ranges::equal(batch[i].tokens, document->tokens));
      REQUIRE(batched->place_of(batch[i]) == plain->place_of(*document));
    }
  }
  CHECK(!plain->next());
  CHECK(count == (name == "text.jsonl" ? 24 : 83));
}

TEST_CASE("a document's place is its line, its number, or its file", "[data]") {
  const TokenDirectory dir;
  const std::string lines = dir.write("a.jsonl", "\n{\"text\": \"\"}\n"),
                    text = dir.write("b", "x\n");
  const auto place = [](const std::string& path, const std::string& separator) {
    const auto reader = open_documents(path, {.separator = separator});
    return reader->place_of(*reader->next());
  };
  CHECK(place(lines, "") == lines + ", line 2");
  CHECK(place(text, "\n") == text + ", document 1");
  CHECK(place(text, "") == text);
}

}  // namespace gxp
