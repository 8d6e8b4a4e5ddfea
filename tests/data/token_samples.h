// Token files for the tests of lib/data, in a directory that goes away with its owner.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "lib/data/dataset.h"
#include "tests/temporary_directory.h"

namespace gxp {

class TokenDirectory : public TemporaryDirectory {
 public:
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(*this / name, std::ios::binary) << content;
    return *this / name;
  }
  template <class Token>
  std::string write(const std::string& name, const std::vector<Token>& tokens) const {
    return write(name, std::string(reinterpret_cast<const char*>(tokens.data()),
                                   tokens.size() * sizeof(Token)));
  }
  // An array as numpy.save() writes it, of `type`, whose last character is an element's bytes.
  std::string write_numpy(const std::string& name, const std::string& type,
                          const std::string& shape, const std::vector<int32_t>& elements,
                          int version) const {
    std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type, shape);
    const size_t length = version == 1 ? 2 : 4;
    header.resize(128 - 8 - length, ' ');
    header.back() = '\n';
    std::string bytes = "\x93NUMPY";
    bytes += {char(version), '\0', char(header.size()), '\0'};
    bytes.resize(8 + length, '\0');
    bytes += header;
    for (const int32_t element : elements) {
      const auto wide = int64_t{element};
      bytes.append(reinterpret_cast<const char*>(&wide), size_t(type.back() - '0'));
    }
    return write(name, bytes);
  }
  // An llm.c shard whose header has these first three numbers.
  template <class Token>
  std::string write_shard(const std::string& name, const std::vector<int32_t>& header,
                          const std::vector<Token>& tokens) const {
    std::vector<int32_t> words = header;
    words.resize(256);
    std::string bytes(reinterpret_cast<const char*>(words.data()), 1024);
    bytes.append(reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(Token));
    return write(name, bytes);
  }
};

// A run on rows of `sequence` tokens.
inline RunConfig run_of_rows(int sequence, int vocab_size) {
  RunConfig run;
  run.data.sequence = sequence;
  run.model.vocab_size = vocab_size;
  return run;
}

// The samples of `paths` in such a run.
inline Dataset dataset_of(const std::vector<std::string>& paths, const RunConfig& run) {
  RunEncoder encoder(run);
  return Dataset(paths, encoder);
}
inline Dataset dataset_of(const std::vector<std::string>& paths, int sequence, int vocab_size) {
  return dataset_of(paths, run_of_rows(sequence, vocab_size));
}

// first, first + 1, ... (count of them)
template <class Token = int32_t>
std::vector<Token> counting_tokens(size_t count, int first = 0) {
  std::vector<Token> tokens(count);
  std::iota(tokens.begin(), tokens.end(), Token(first));
  return tokens;
}

}  // namespace gxp
