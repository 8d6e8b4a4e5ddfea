// Sets of Unicode code points, and those that a class of regular expressions or of the tokenizers
// library holds: Unicode 16, whatever the version of the libraries that gxp is built with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gxp {

struct CodeRange {
  char32_t first = 0, last = 0;
  bool operator==(const CodeRange&) const = default;
};

// Sorted ranges that neither overlap nor touch, without surrogates.
class CodeSet {
 public:
  CodeSet() = default;
  explicit CodeSet(std::vector<CodeRange> ranges);  // in any order
  // The set of one of classes.inc, by its name there; empty for an unknown one.
  static CodeSet of_class(std::string_view name);
  [[nodiscard]] const std::vector<CodeRange>& ranges() const { return ranges_; }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] CodeSet with(const CodeSet& other) const;
  [[nodiscard]] CodeSet within(const CodeSet& other) const;
  [[nodiscard]] CodeSet complement() const;

 private:
  std::vector<CodeRange> ranges_;
};

}  // namespace gxp
