#include <algorithm>

#include "lib/base/error.h"
#include "lib/tools/imports/syntax.h"

namespace gxp {
namespace {

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  SourceTree read() {
    SourceTree words = SourceTree::array();
    while (skip()) words.push_back(read_word());
    return SourceTree{{"words", std::move(words)}};
  }

 private:
  [[noreturn]] void wrong(std::string_view what) const {
    const auto end = text_.begin() + ptrdiff_t(at_);
    fail(ErrorKind::kConfig, "{}:{}: {}", path_, 1 + std::count(text_.begin(), end, '\n'), what);
  }

  [[nodiscard]] bool is_at(std::string_view what) const {
    return text_.substr(at_).starts_with(what);
  }

  // To the next word; false at the end of the command.
  bool skip() {
    while (at_ < text_.size()) {
      if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else if (is_at("\\\n")) {
        at_ += 2;
      } else if (is_at("\\\r\n")) {
        at_ += 3;
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return true;
      }
    }
    return false;
  }

  std::string read_word() {
    std::string word;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (std::string_view(" \t\r\n").find(c) != std::string_view::npos) break;
      if (std::string_view("|&;<>()$`").find(c) != std::string_view::npos)
        wrong("the shell gives '" + std::string(1, c) +
              "' a meaning of its own: write the one command, with its values");
      if (c == '"' || c == '\'') {
        const size_t end = text_.find(c, at_ + 1);
        if (end == std::string_view::npos) wrong("a quote is not closed");
        const std::string_view quoted = text_.substr(at_ + 1, end - at_ - 1);
        if (c == '"' && quoted.find_first_of("$`\\") != std::string_view::npos)
          wrong(
              "the shell changes a text with '$', '`' or '\\' between double quotes: write what it "
              "becomes");
        word += quoted;
        at_ = end + 1;
      } else if (c == '\\') {
        if (is_at("\\\n") || is_at("\\\r\n")) break;
        if (at_ + 1 < text_.size()) word += text_[at_ + 1];
        at_ = std::min(at_ + 2, text_.size());
      } else {
        word += c;
        ++at_;
      }
    }
    return word;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

}  // namespace

SourceTree parse_command_words(std::string_view text, const std::string& path) {
  return ShellReader(text, path).read();
}

}  // namespace gxp
