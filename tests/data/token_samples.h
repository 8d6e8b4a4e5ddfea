// Token files for the tests of lib/data, in a directory that goes away with its owner.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace gxp {

class TokenDirectory {
 public:
  TokenDirectory() : path_(std::filesystem::temp_directory_path() / "gxp-tokens-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  }
  ~TokenDirectory() { std::filesystem::remove_all(path_); }
  TokenDirectory(const TokenDirectory&) = delete;
  TokenDirectory& operator=(const TokenDirectory&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

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

 private:
  std::string path_;
};

// first, first + 1, ... (count of them)
template <class Token = int32_t>
std::vector<Token> counting_tokens(size_t count, int first = 0) {
  std::vector<Token> tokens(count);
  std::iota(tokens.begin(), tokens.end(), Token(first));
  return tokens;
}

}  // namespace gxp
