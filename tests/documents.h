// Rows that hold several documents, one behind the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace gxp {

// The lengths of the documents of each row.
using DocumentLengths = std::vector<std::vector<size_t>>;

// Rows of up to `longest` tokens in a document.
inline DocumentLengths random_lengths(size_t rows, size_t positions, size_t longest,
                                      unsigned seed) {
  std::mt19937 random(seed);
  DocumentLengths all(rows);
  for (std::vector<size_t>& lengths : all) {
    for (size_t at = 0; at < positions; at += lengths.back())
      lengths.push_back(std::min(1 + random() % longest, positions - at));
  }
  return all;
}

struct DocumentPlace {
  size_t row, begin, length;
};

inline std::vector<DocumentPlace> places_of(const DocumentLengths& all) {
  std::vector<DocumentPlace> places;
  for (size_t row = 0; row < all.size(); ++row) {
    size_t begin = 0;
    for (const size_t length : all[row]) {
      places.push_back({row, begin, length});
      begin += length;
    }
  }
  return places;
}

// document_begin of kernels/ops.h.
inline std::vector<int32_t> begins_of(const DocumentLengths& all) {
  std::vector<int32_t> begins;
  for (const DocumentPlace& place : places_of(all))
    begins.insert(begins.end(), place.length, int32_t(place.begin));
  return begins;
}

}  // namespace gxp
