// A dataset whose rows hold documents, over a file of rows.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "lib/data/dataset.h"
#include "tests/documents.h"

namespace gxp {

class DocumentDataset final : public Dataset {
 public:
  // The lengths of a row's documents sum up to the row's, sequence + 1.
  DocumentDataset(const std::string& path, RunEncoder encoder, const DocumentLengths& lengths)
      : Dataset({path}, encoder), begins_(begins_of(lengths)) {}

  [[nodiscard]] bool has_documents() const override { return true; }
  void read_document_begins(uint64_t sample, std::span<int32_t> begins) const override {
    std::copy_n(begins_.begin() + std::ptrdiff_t(sample * begins.size()), begins.size(),
                begins.begin());
  }

 private:
  const std::vector<int32_t> begins_;
};

}  // namespace gxp
