// The JSON records of a file: each line, or each element of one JSON array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/data/documents/byte_window.h"

namespace gxp {

enum class RecordLayout { kLines, kArray };

struct RawRecord {
  std::string_view text;  // without white space around it; ByteWindow::kPadding bytes follow
  uint64_t line = 0;      // where it begins, from 1
  bool is_cut = false;    // the file ends within the record, or right behind it without a line end
};

// Lines: those of white space alone are skipped, and so is a byte order mark before the first. An
// array's elements are told by brackets, strings and commas; whether they are JSON is for who parses
// them. Threads: one at a time. Cost: 1 GB/s and more for lines, less for arrays.
class RecordSource {
 public:
  RecordSource(ByteWindow window, RecordLayout layout);
  // Nothing at the end. Valid until the next call. Errors: ByteWindow's; kCorrupt of an array: no
  // comma between elements, something behind its end, or no end.
  std::optional<RawRecord> next();
  [[nodiscard]] RecordLayout layout() const { return layout_; }
  // How much of the file has been read, in its own bytes.
  [[nodiscard]] uint64_t consumed() const { return window_.consumed(); }

 private:
  std::optional<RawRecord> next_line();
  std::optional<RawRecord> next_element();
  // Drops white space, counts its lines, and gives the byte behind it; nothing at the end.
  std::optional<char> skip_blanks();
  RawRecord take_element();
  [[noreturn]] void refuse(std::string_view why) const;

  ByteWindow window_;
  RecordLayout layout_;
  uint64_t line_ = 1;
  uint64_t elements_ = 0;
  bool has_begun_ = false, has_ended_ = false;  // the array
};

}  // namespace gxp
