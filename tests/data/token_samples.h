// Token files for the tests of lib/data, in a directory that goes away with its owner.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

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

// first, first + 1, ... (count of them)
template <class Token = int32_t>
std::vector<Token> counting_tokens(size_t count, int first = 0) {
  std::vector<Token> tokens(count);
  std::iota(tokens.begin(), tokens.end(), Token(first));
  return tokens;
}

}  // namespace gxp
