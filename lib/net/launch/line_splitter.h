// Cuts a stream of bytes into lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gxp {

class LineSplitter {
 public:
  // A longer line is cut, so that a stream without newlines needs no more memory than this.
  static constexpr size_t kMaxLineBytes = size_t{1} << 20;

  void add(std::string_view bytes) { pending_ += bytes; }
  // The next whole line with its newline; nothing if it is not complete yet.
  std::optional<std::string> next();
  // The text after the last newline, at the end of the stream.
  std::string rest();

 private:
  std::string pending_;
  size_t start_ = 0;     // of the next line
  size_t searched_ = 0;  // bytes before it hold no newline from start_ on
};

}  // namespace gxp
