#include "lib/data/data_files.h"

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/data/corpus/tokenized_file.h"
#include "lib/data/documents/open_documents.h"
#include "lib/data/files/path_list.h"

namespace gxp {
namespace {

// A file of the run, as its beginning tells.
struct FoundFile {
  std::string path, kind;
  DocumentTraits traits;
};

struct FoundFiles {
  std::vector<FoundFile> files;
  bool are_all = true;  // none has been passed over

  void add(const FoundFiles& more) {
    files.insert(files.end(), more.files.begin(), more.files.end());
    are_all &= more.are_all;
  }
};

FoundFiles find_files(const RunConfig& run, const std::vector<std::string>& entries,
                      const std::string& setting, bool must_be_here) {
  const bool ends = !run.data.end_token.empty() && run.data.end_token != kNoEndToken;
  DocumentOptions options = document_options(run);
  if (ends) options.end_token = 0;  // which one it is does not matter
  options.row_tokens = 0;           // nor whether rows have the run's length
  FoundFiles found;
  for (const std::string& entry : entries) {
    try {
      for (const std::string& path : expand_path(entry, setting)) {
        const auto reader = open_documents(path, options);
        found.files.push_back({path, reader->kind(), reader->traits()});
      }
    } catch (const Error&) {
      if (must_be_here) throw;
      found.are_all = false;
    }
  }
  return found;
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
  const FoundFiles& read = !validates ? all : splits ? train : valid;
  run.data.documents = documents_of(run, read);
  check_attention(run, read);
  return run;
}

}  // namespace gxp
