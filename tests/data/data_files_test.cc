// What the files of a run decide before they are read.
#include "lib/data/data_files.h"

#include <set>

#include "lib/base/error.h"
#include "lib/config/load.h"
#include "lib/data/dataset.h"
#include "lib/data/files/token_file.h"
#include "tests/catch.h"
#include "tests/data/token_samples.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

using Names = std::set<std::string>;
using Sets = std::vector<std::string>;

// A file of each kind.
class FilesOfAllKinds {
 public:
  FilesOfAllKinds() {
    dir_.write("text.txt", "first, second, third");
    dir_.write("text.jsonl", R"({"text": "first"})"
                             "\n"
                             R"({"text": "second"})");
    dir_.write("chats.jsonl", R"({"messages": [{"role": "user", "content": "first"}]})");
    dir_.write("pairs.jsonl", R"({"prompt": "first", "completion": "second"})");
    dir_.write_numpy("stream.npy", "<i4", "(9,)", counting_tokens(9), 1);
    dir_.write_numpy("rows.npy", "<i4", "(3, 3)", counting_tokens(9), 1);
    dir_.write("rows.i32", counting_tokens(9));
    dir_.write("bare.bin", counting_tokens<uint16_t>(9));
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return name == "indexed" ? GXP_TEST_DATA "/documents/megatron_u2.bin" : dir_ / name;
  }
  // A run of bytes on rows of two tokens.
  [[nodiscard]] RunConfig run(const Names& train, const Sets& sets, const Names& valid = {}) const {
    Sets all = {"model.vocab_size=256", "data.sequence=2", "data.cache=" + dir_ / "cache",
                "data.train=" + paths(train)};
    if (!valid.empty()) all.push_back("data.valid=" + paths(valid));
    all.insert(all.end(), sets.begin(), sets.end());
    return load_config("", all, {}, false).run;
  }

 private:
  [[nodiscard]] std::string paths(const Names& names) const {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ",") + path(name);
    return all;
  }
  TokenDirectory dir_;
};

const std::vector<std::string> kAllKinds = {"text.txt",    "text.jsonl", "chats.jsonl",
                                            "pairs.jsonl", "stream.npy", "rows.npy",
                                            "rows.i32",    "indexed",    "bare.bin"};

// A setting, and the kinds of files that it is about.
struct SettingOfFiles {
  std::string set;
  Names about;
};
const std::vector<SettingOfFiles> kSettingsOfFiles = {
    {"data.field=text", {"text.jsonl"}},
    {"data.field=messages", {"chats.jsonl"}},
    {"data.field=prompt+completion", {"pairs.jsonl"}},
    {"data.document_separator=,", {"text.txt"}},
    {"data.end_token=3", {"text.jsonl", "pairs.jsonl", "stream.npy"}},
    {"data.end_token=none", {kAllKinds.begin(), kAllKinds.end()}},
    {"data.chat_template=other", {"chats.jsonl", "pairs.jsonl"}},
    {"data.format=text", {"text.txt", "text.jsonl", "chats.jsonl", "pairs.jsonl"}},
    {"data.format=nanogpt", {"bare.bin"}},
    {"data.tokenizer=byte", {kAllKinds.begin(), kAllKinds.end()}},
    {"data.cross_documents=true", {kAllKinds.begin(), kAllKinds.end()}},
};

// Whether the file is refused with the setting, for another reason: bare ids that are not asked for,
// or a record without the field.
bool cannot_be_read(const SettingOfFiles& setting, const std::string& name) {
  if (name == "bare.bin") return setting.set != "data.format=nanogpt";
  return setting.set.starts_with("data.field=") && name.ends_with(".jsonl") &&
         !setting.about.contains(name);
}

constexpr std::array kAllNeeds = {FilesNeeded::kAll, FilesNeeded::kOfValidation,
                                  FilesNeeded::kNone};

}  // namespace

TEST_CASE("a setting of files is refused by name where no file of the run is such", "[data]") {
  const FilesOfAllKinds files;
  const SettingOfFiles setting = GENERATE(from_range(kSettingsOfFiles));
  const std::string name = GENERATE(from_range(kAllKinds));
  CAPTURE(setting.set, name);
  if (cannot_be_read(setting, name)) return;
  const bool is_valid = GENERATE(false, true);
  const RunConfig run =
      is_valid ? files.run({"rows.i32"}, {setting.set}, {name}) : files.run({name}, {setting.set});
  for (const FilesNeeded needed : kAllNeeds) {
    if (setting.about.contains(name)) {
      CHECK_NOTHROW(with_files(run, {needed}));
      continue;
    }
    const auto [kind, text] = error_of([&] { with_files(run, {needed}); });
    CHECK(kind == ErrorKind::kConfig);
    CHECK_THAT(text, Catch::Contains(setting.set.substr(0, setting.set.find('=')) + " \"") &&
                         Catch::EndsWith("leave it out"));
  }
}

TEST_CASE("the end token of text that is read as bytes is refused", "[data]") {
  const FilesOfAllKinds files;
  const Sets ends = {"data.end_token=,"};
  CHECK(error_of([&] { with_files(files.run({"text.txt"}, ends), {}); }).kind ==
        ErrorKind::kConfig);
  for (const char* more : {"data.document_separator=,", "data.tokenizer=somewhere"})
    CHECK_NOTHROW(with_files(files.run({"text.txt"}, {ends[0], more}), {}));
}

TEST_CASE("wider ids than nanoGPT's are not read as its", "[data]") {
  const TokenDirectory dir;
  const auto opened = [&](const auto& ids) {
    return error_of([&] { TokenFile(dir.write("a.bin", ids), false, DataFormat::kNanoGpt); });
  };
  CHECK(opened(counting_tokens<uint32_t>(64)).says("numpy.fromfile"));
  CHECK(opened(counting_tokens<uint64_t>(64)).says("numpy.fromfile"));
  CHECK(opened(counting_tokens<uint16_t>(64)).message.empty());
  CHECK(opened(std::vector<uint16_t>(256, 0)).message.empty());  // as of padding
}

TEST_CASE("a chat template is used by --chat, too", "[data]") {
  const FilesOfAllKinds files;
  const RunConfig run = files.run({"rows.i32"}, {"data.chat_template=other"});
  CHECK_NOTHROW(with_files(run, {.writes_chats = true}));
}

TEST_CASE("files tell before they are read whether rows hold documents, as the samples do",
          "[data]") {
  const FilesOfAllKinds files;
  const auto [name, sets, is_kept_apart] = GENERATE(table<std::string, Sets, bool>(
      {{"text.txt", {}, false},
       {"text.txt", {"data.tokenizer=byte"}, false},
       {"text.txt", {"data.document_separator=,"}, true},
       {"text.txt", {"data.document_separator=,", "data.cross_documents=true"}, false},
       {"text.jsonl", {}, true},
       {"text.jsonl", {"data.cross_documents=true"}, false},
       {"text.jsonl", {"data.format=text"}, false},
       {"pairs.jsonl", {}, true},
       {"stream.npy", {}, false},
       {"stream.npy", {"data.end_token=3"}, true},
       {"stream.npy", {"data.end_token=none"}, false},
       {"rows.npy", {"data.end_token=none"}, false},
       {"rows.i32", {}, false},
       {"indexed", {"model.vocab_size=65536"}, true},
       {"bare.bin", {"data.format=nanogpt"}, false},
       {"bare.bin", {"data.format=nanogpt", "data.end_token=3"}, true}}));
  CAPTURE(name, sets);
  const RunConfig run = with_files(files.run({name}, sets), {});
  CHECK((run.data.documents == RowDocuments::kApart) == is_kept_apart);
  CHECK(run.data.documents != RowDocuments::kUnknown);
  const bool has_documents = dataset_of(run.data.train, run).has_documents();
  CHECK((has_documents && !run.data.cross_documents) == is_kept_apart);
}

TEST_CASE("a file that is not here leaves documents unknown to a plan, and stops a run", "[data]") {
  const FilesOfAllKinds files;
  const auto [here, set, expected] = GENERATE(table<std::string, std::string, RowDocuments>(
      {{"rows.i32", "data.end_token=3", RowDocuments::kUnknown},
       {"text.jsonl", "data.document_separator=,", RowDocuments::kApart},
       {"text.jsonl", "data.cross_documents=true", RowDocuments::kNotApart}}));
  const RunConfig run = files.run({here, "nowhere.txt"}, {set});
  CHECK(with_files(run, {FilesNeeded::kNone}).data.documents == expected);
  CHECK(error_of([&] { with_files(run, {}); }).kind == ErrorKind::kIo);
  const RunConfig valid = files.run({"nowhere.txt"}, {set}, {here});
  CHECK((with_files(valid, {FilesNeeded::kOfValidation}).data.documents == RowDocuments::kApart) ==
        (expected == RowDocuments::kApart));
}

TEST_CASE("cuDNN is refused for documents that are kept apart, before anything starts", "[data]") {
  const FilesOfAllKinds files;
  const auto [name, sets, is_refused] = GENERATE(table<std::string, Sets, bool>(
      {{"text.jsonl", {"train.attention=cudnn"}, true},
       {"indexed", {"train.attention=cudnn"}, true},
       {"text.jsonl", {"train.attention=auto"}, false},
       {"text.jsonl", {"train.attention=cudnn", "data.cross_documents=true"}, false},
       {"text.txt", {"train.attention=cudnn"}, false},
       {"rows.npy", {"train.attention=cudnn"}, false}}));
  CAPTURE(name, sets);
  Sets all = sets;
  all.emplace_back("train.precision=bf16");
  const RunConfig run = files.run({name}, all);
  const auto [kind, text] = error_of([&] { with_files(run, {}); });
  CHECK(kind.has_value() == is_refused);
  if (!is_refused) return;
  CHECK(kind == ErrorKind::kConfig);
  CHECK_THAT(text, Catch::Contains("train.attention \"cudnn\"") &&
                       Catch::Contains("data.cross_documents = false") &&
                       Catch::Contains("set train.attention to auto or own"));
}

TEST_CASE("an entry that gives text beside other files is refused, and a file that is named twice",
          "[data]") {
  const TokenDirectory dir;
  dir.write("README.md", "# A card");
  dir.write("a.jsonl", "{\"text\": \"first\"}");
  dir.write("b.jsonl", "{\"text\": \"second\"}");
  const auto [entries, sets, expected] =
      GENERATE(table<std::string, Sets, std::string>({{"", {}, "README.md, which is text, and "},
                                                      {"*", {}, "README.md, which is text, and "},
                                                      {"", {"data.format=text"}, ""},
                                                      {"*.jsonl", {}, ""},
                                                      {"README.md,a.jsonl", {}, ""},
                                                      {"*.jsonl,b.jsonl", {}, "b.jsonl twice"},
                                                      {"a.jsonl,./a.jsonl", {}, "a.jsonl twice"}}));
  CAPTURE(entries, sets);
  std::string train;
  for (size_t begin = 0; begin <= entries.size();) {
    const size_t end = std::min(entries.find(',', begin), entries.size());
    train += (train.empty() ? "" : ",") + dir / entries.substr(begin, end - begin);
    begin = end + 1;
  }
  Sets all = {"model.vocab_size=256", "data.tokenizer=byte", "data.train=" + train};
  all.insert(all.end(), sets.begin(), sets.end());
  const RunConfig run = load_config("", all, {}, false).run;
  const Caught caught = error_of([&] { with_files(run, {}); });
  CHECK(caught.kind.has_value() == !expected.empty());
  CHECK(caught.says(expected));
}

}  // namespace gxp
