#include "lib/data/documents/text_documents.h"

#include <algorithm>
#include <utility>

namespace gxp {
namespace {

class TextDocuments : public DocumentReader {
 public:
  TextDocuments(const std::string& path, std::string kind, ByteWindow window, std::string separator)
      : DocumentReader(path, std::move(kind), {.several = !separator.empty()}),
        window_(std::move(window)),
        separator_(std::move(separator)) {}

  std::optional<DocumentView> next() override {
    const size_t length = find_end();
    const std::string_view view = window_.view();
    if (view.empty()) return std::nullopt;
    window_.drop(std::min(length + separator_.size(), view.size()));
    return DocumentView{.number = count_++, .text = view.substr(0, length)};
  }
  [[nodiscard]] uint64_t consumed() const override { return window_.consumed(); }
  [[nodiscard]] std::string place_of(const DocumentView& document) const override {
    return separator_.empty() ? path() : DocumentReader::place_of(document);
  }

 private:
  // How many bytes of the window are the next document; the window then has the separator, too.
  size_t find_end() {
    for (size_t searched = 0;;) {
      const std::string_view view = window_.view();
      const size_t found =
          separator_.empty() ? std::string_view::npos : view.find(separator_, searched);
      if (found != std::string_view::npos) return found;
      if (!window_.extend()) return window_.view().size();
      // A separator may begin in what has been searched.
      searched = view.size() - std::min(view.size(), separator_.size());
    }
  }

  ByteWindow window_;
  std::string separator_;
  uint64_t count_ = 0;
};

}  // namespace

std::unique_ptr<DocumentReader> read_text_documents(const std::string& path, ByteWindow window,
                                                    const std::string& separator,
                                                    const std::string& packing) {
  return std::make_unique<TextDocuments>(path, "text" + packing, std::move(window), separator);
}

}  // namespace gxp
