#include "lib/data/documents/document_reader.h"

#include <fmt/format.h>

#include <utility>

namespace gxp {

DocumentReader::DocumentReader(std::string path, std::string kind, const DocumentTraits& traits)
    : path_(std::move(path)), kind_(std::move(kind)), traits_(traits) {}

std::string DocumentReader::place_of(const DocumentView& document) const {
  if (document.line > 0) return fmt::format("{}, line {}", path_, document.line);
  return fmt::format("{}, document {}", path_, document.number + 1);
}

}  // namespace gxp
