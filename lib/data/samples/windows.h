// Samples of a stream of tokens: windows at every `sequence`-th token, so that neighbours share one
// token, and each token but the first is a target once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "lib/base/error.h"

namespace gxp {

// kConfig: the stream at `path` is too short for one.
inline uint64_t count_windows(const std::string& path, uint64_t tokens, int sequence) {
  if (tokens <= uint64_t(sequence))
    fail(ErrorKind::kConfig,
         "read tokens from {}: {} tokens, but one sample takes {} (data.sequence + 1)", path,
         tokens, sequence + 1);
  return (tokens - 1) / uint64_t(sequence);
}

// Fills `begins` for the window that starts at token `first`. document_of(token) and
// begin_of(document) tell where documents are.
void find_begins(uint64_t first, std::span<int32_t> begins, const auto& document_of,
                 const auto& begin_of) {
  uint64_t document = document_of(first);
  uint64_t next = begin_of(document + 1);
  int32_t begin = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    for (; first + i == next; next = begin_of(++document + 1)) begin = int32_t(i);
    begins[i] = begin;
  }
}

}  // namespace gxp
