#include "lib/data/documents/token_documents.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/data/files/token_file.h"

namespace gxp {
namespace {

constexpr uint64_t kMostTokens = uint64_t{1} << 29;  // of a document: 2 GiB of int32
constexpr uint64_t kPieceTokens = uint64_t{1} << 16;

DocumentTraits traits_of(const TokenFile& file, const DocumentOptions& options) {
  return {.form = DocumentForm::kTokens,
          .container = file.index()      ? DocumentContainer::kIndexed
                       : file.has_rows() ? DocumentContainer::kRows
                                         : DocumentContainer::kStream,
          .several = file.parts_documents(options.end_token)};
}

class TokenDocuments : public DocumentReader {
 public:
  TokenDocuments(TokenFile file, const DocumentOptions& options)
      : DocumentReader(
            file.path(),
            std::string(to_string(file.kind())) + (file.has_labels() ? " with labels" : ""),
            traits_of(file, options)),
        file_(std::move(file)),
        options_(options) {
    if (file_.has_rows()) row_ = file_.row_tokens() > 0 ? file_.row_tokens() : options.row_tokens;
    if (row_ == 0 || file_.token_count() % row_ == 0) return;
    fail(ErrorKind::kCorrupt, "read tokens from {}: {} tokens are not whole rows of {}", path(),
         file_.token_count(), row_);
  }

  std::optional<DocumentView> next() override {
    const bool is_over =
        file_.index() ? count_ == file_.index()->document_count() : begin_ == file_.token_count();
    if (is_over) return std::nullopt;
    tokens_.clear();
    labels_.clear();
    if (file_.index())
      take(file_.index()->document_begin(count_ + 1) - begin_);
    else if (file_.has_rows())
      take(row_ > 0 ? row_ : file_.token_count());
    else
      take_stream();
    if (file_.has_labels()) {
      labels_.resize(tokens_.size());
      file_.read_labels(count_, tokens_, labels_.data());
    }
    return DocumentView{.number = count_++, .tokens = tokens_, .labels = labels_};
  }
  [[nodiscard]] uint64_t consumed() const override {
    return begin_ == file_.token_count() ? file_.bytes()
                                         : file_.bytes() / file_.token_count() * begin_;
  }

 private:
  // Adds the next `count` tokens of the file to the document.
  void take(uint64_t count) {
    count = std::min(count, file_.token_count() - begin_);
    if (tokens_.size() + count > kMostTokens)
      fail(ErrorKind::kConfig,
           "read tokens from {}: a document of more than {} tokens, from token {} on", path(),
           kMostTokens, begin_ - tokens_.size());
    const size_t before = tokens_.size();
    tokens_.resize(before + count);
    file_.read(begin_, count, options_.vocab_size, tokens_.data() + before);
    begin_ += count;
  }

  // Up to the next end token, or all that is left.
  void take_stream() {
    for (size_t searched = 0; begin_ < file_.token_count(); searched = tokens_.size()) {
      take(options_.end_token ? kPieceTokens : file_.token_count());
      if (!options_.end_token) continue;
      const auto end =
          std::find(tokens_.begin() + std::ptrdiff_t(searched), tokens_.end(), *options_.end_token);
      if (end == tokens_.end()) continue;
      begin_ -= uint64_t(tokens_.end() - end) - 1;
      tokens_.erase(end + 1, tokens_.end());
      return;
    }
  }

  TokenFile file_;
  DocumentOptions options_;
  uint64_t row_ = 0;    // tokens of a row; 0: there are no rows
  uint64_t begin_ = 0;  // of the next document
  uint64_t count_ = 0;  // documents so far
  std::vector<int32_t> tokens_, labels_;
};

}  // namespace

std::unique_ptr<DocumentReader> read_token_documents(const std::string& path,
                                                     const DocumentOptions& options) {
  return std::make_unique<TokenDocuments>(TokenFile(path, true, options.format), options);
}

}  // namespace gxp
