// gxp_tokenize TOKENIZER [PASSES]: encodes the texts of stdin, for comparison with other libraries. A text is its
// length, 32 bits little-endian, and its bytes; its ids go to stdout as their number and themselves. With PASSES it
// encodes them that many times instead, and prints the seconds of the fastest pass.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>

#include "lib/base/error.h"
#include "lib/text/tokenizer.h"

namespace gxp {
namespace {

std::vector<std::string_view> texts_of(std::string_view input) {
  std::vector<std::string_view> texts;
  while (!input.empty()) {
    uint32_t length = 0;
    std::memcpy(&length, input.data(), sizeof length);
    texts.push_back(input.substr(sizeof length, length));
    input.remove_prefix(sizeof length + length);
  }
  return texts;
}

void print_ids(const Tokenizer& tokenizer, const std::vector<std::string_view>& texts) {
  for (const std::string_view text : texts) {
    std::vector<int32_t> ids;
    tokenizer.encode(text, ids);
    const auto count = uint32_t(ids.size());
    std::fwrite(&count, sizeof count, 1, stdout);
    std::fwrite(ids.data(), sizeof ids[0], count, stdout);
  }
}

void print_seconds(const Tokenizer& tokenizer, const std::vector<std::string_view>& texts,
                   int passes) {
  double fastest = 1e9;
  for (int pass = 0; pass < passes; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    for (const std::string_view text : texts) {
      std::vector<int32_t> ids;
      tokenizer.encode(text, ids);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    fastest = std::min(fastest, seconds.count());
  }
  std::printf("%.6f\n", fastest);
}

}  // namespace
}  // namespace gxp

int main(int argc, char** argv) {
  try {
    const auto tokenizer = gxp::open_tokenizer(argv[1]);
    const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
    const std::vector<std::string_view> texts = gxp::texts_of(input);
    if (argc > 2)
      gxp::print_seconds(*tokenizer, texts, std::atoi(argv[2]));
    else
      gxp::print_ids(*tokenizer, texts);
  } catch (...) {
    const gxp::Ending ending = gxp::ending_of(std::current_exception());
    std::fputs(ending.line.c_str(), stderr);
    return ending.code;
  }
  return 0;
}
