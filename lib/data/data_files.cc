#include "lib/data/data_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/data/corpus/document_encoder.h"
#include "lib/data/corpus/tokenized_file.h"
#include "lib/data/documents/open_documents.h"
#include "lib/data/files/file_kind.h"
#include "lib/data/files/path_list.h"

namespace gxp {
namespace {

// A file of the run, as its beginning tells.
struct FoundFile {
  std::string path, kind;
  DocumentTraits traits;
  bool is_bytes;  // is_read_as_bytes()
};

struct FoundFiles {
  std::vector<FoundFile> files;
  bool are_all = true;  // none has been passed over

  void add(const FoundFiles& more) {
    files.insert(files.end(), more.files.begin(), more.files.end());
    are_all &= more.are_all;
  }
};

// Of a directory or a pattern, whose files nobody has named: a README beside data is no document.
void check_entry(const RunConfig& run, std::span<const FoundFile> files,
                 const std::string& setting) {
  if (run.data.format == DataFormat::kText) return;
  const auto is_text = [](const FoundFile& file) {
    return file.traits.container == DocumentContainer::kPlainText;
  };
  const auto text = std::ranges::find_if(files, is_text);
  const auto other = std::ranges::find_if_not(files, is_text);
  if (text != files.end() && other != files.end())
    fail(ErrorKind::kConfig,
         "{}: one entry gives {}, which is {}, and {}, which is {}; name the files that are meant, "
         "as with a pattern",
         setting, text->path, text->kind, other->path, other->kind);
}

void check_named_once(const std::vector<FoundFile>& files, const std::string& setting) {
  std::set<std::string> seen;
  for (const FoundFile& file : files) {
    std::error_code error;
    if (!seen.insert(std::filesystem::weakly_canonical(file.path, error).string()).second)
      fail(ErrorKind::kConfig,
           "{}: it names {} twice; name it once, and use data.weights to give it a larger share",
           setting, file.path);
  }
}

FoundFiles find_files(const RunConfig& run, const std::vector<std::string>& entries,
                      const std::string& setting, bool must_be_here) {
  const bool ends = !run.data.end_token.empty() && run.data.end_token != kNoEndToken;
  DocumentOptions options = document_options(run);
  if (ends) options.end_token = 0;  // which one it is does not matter
  options.row_tokens = 0;           // nor whether rows have the run's length
  FoundFiles found;
  for (const std::string& entry : entries) {
    const size_t before = found.files.size();
    try {
      for (const std::string& path : expand_path(entry, setting)) {
        const auto reader = open_documents(path, options);
        found.files.push_back(
            {path, reader->kind(), reader->traits(), is_read_as_bytes(*reader, run)});
      }
      check_entry(run, std::span(found.files).subspan(before), setting);
    } catch (const Error&) {
      if (must_be_here) throw;
      found.are_all = false;
    }
  }
  check_named_once(found.files, setting);
  return found;
}

bool is_json(const RunConfig& /*run*/, const FoundFile& file) {
  return file.traits.container == DocumentContainer::kJson;
}
bool is_plain_text(const RunConfig& /*run*/, const FoundFile& file) {
  return file.traits.container == DocumentContainer::kPlainText;
}
bool is_chats(const RunConfig& /*run*/, const FoundFile& file) {
  return file.traits.form == DocumentForm::kChat;
}
// Chats end as their template has it.
bool may_end_in_token(const RunConfig& /*run*/, const FoundFile& file) {
  const DocumentTraits& traits = file.traits;
  if (traits.form == DocumentForm::kTokens) return traits.container == DocumentContainer::kStream;
  return traits.form == DocumentForm::kChat ? traits.are_pairs : !file.is_bytes;
}
bool has_asked_format(const RunConfig& run, const FoundFile& file) {
  return run.data.format == DataFormat::kNanoGpt ? file.kind == to_string(DataKind::kUint16)
                                                 : file.traits.form != DocumentForm::kTokens;
}

// A setting that is about files of some kinds alone. Those that are not here hold of files of any
// kind (sequence, order, cross_documents), say where something would lie (cache), or are used
// elsewhere, too (tokenizer: by --show-data and --generate).
struct FileSetting {
  std::string_view key;
  std::string_view (*value)(const DataConfig& data);  // "": it asks for nothing
  bool (*is_for)(const RunConfig& run, const FoundFile& file);
  std::string_view what;  // it is for
};
constexpr std::array kFileSettings = {
    FileSetting{"format",
                [](const DataConfig& data) {
                  return data.format == DataFormat::kAuto ? "" : data.format.word();
                },
                has_asked_format, "files of that format"},
    FileSetting{"field", [](const DataConfig& data) -> std::string_view { return data.field; },
                is_json, "JSON lines and arrays"},
    FileSetting{"document_separator",
                [](const DataConfig& data) -> std::string_view { return data.document_separator; },
                is_plain_text, "plain text"},
    FileSetting{"end_token",
                [](const DataConfig& data) -> std::string_view {
                  return data.end_token == kNoEndToken ? "" : std::string_view(data.end_token);
                },
                may_end_in_token,
                "text that a tokenizer reads, pairs of prompt and completion, and streams of token "
                "ids without an index"},
    FileSetting{"chat_template",
                [](const DataConfig& data) {
                  return data.chat_template == DataConfig().chat_template
                             ? std::string_view()
                             : std::string_view(data.chat_template);
                },
                is_chats, "chats"},
};

void check_settings(const RunConfig& run, const FoundFiles& found, const DataPurpose& purpose) {
  if (!found.are_all || found.files.empty()) return;
  for (const FileSetting& setting : kFileSettings) {
    const std::string_view value = setting.value(run.data);
    const bool is_used_elsewhere = purpose.writes_chats && setting.key == "chat_template";
    if (value.empty() || is_used_elsewhere) continue;
    const auto uses = [&](const FoundFile& file) { return setting.is_for(run, file); };
    if (std::ranges::any_of(found.files, uses)) continue;
    const FoundFile& first = found.files.front();
    fail(ErrorKind::kConfig,
         "data.{} \"{}\": it is for {}, and no file of data.train and data.valid is that: {} is "
         "{}; leave it out",
         setting.key, value, setting.what, first.path, first.kind);
  }
}

RowDocuments documents_of(const RunConfig& run, const FoundFiles& read) {
  if (run.data.cross_documents) return RowDocuments::kNotApart;
  const auto has_several = [](const FoundFile& file) { return file.traits.several; };
  if (std::ranges::any_of(read.files, has_several)) return RowDocuments::kApart;
  return read.are_all ? RowDocuments::kNotApart : RowDocuments::kUnknown;
}

void check_attention(const RunConfig& run, const FoundFiles& read) {
  if (run.data.documents != RowDocuments::kApart || run.train.attention != AttentionChoice::kCudnn)
    return;
  const FoundFile& file =
      *std::ranges::find_if(read.files, [](const FoundFile& each) { return each.traits.several; });
  fail(ErrorKind::kConfig,
       "train.attention \"cudnn\": with data.cross_documents = false the documents of {} ({}) are "
       "kept apart, which cuDNN's graph cannot do; set train.attention to auto or own, or "
       "data.cross_documents = true",
       file.path, file.kind);
}

}  // namespace

RunConfig with_files(RunConfig run, const DataPurpose& purpose) {
  const DataConfig& data = run.data;
  const bool splits = data.validation_split > 0;
  const bool trains = purpose.needed == FilesNeeded::kAll;
  const bool validates = purpose.needed == FilesNeeded::kOfValidation;
  const FoundFiles train =
      find_files(run, data.train, "data.train", trains || (validates && splits));
  const FoundFiles valid = find_files(run, data.valid, "data.valid", trains || validates);
  FoundFiles all = train;
  all.add(valid);
  check_settings(run, all, purpose);
  const FoundFiles& read = !validates ? all : splits ? train : valid;
  run.data.documents = documents_of(run, read);
  check_attention(run, read);
  return run;
}

}  // namespace gxp
