// Outliers among a run's losses or gradient norms: how far the newest of the last 128 values is from
// their mean, in standard deviations (z), as llm.c's -sl and -sg have it.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace gxp {

// Pure: the result depends on the sequence of values alone.
class Outliers {
 public:
  static constexpr size_t kWindow = 128;

  // `value` is finite. Its z among the last kWindow values, of which it is one; 0 if they are equal; nothing
  // before there were so many before it.
  std::optional<double> add(double value);

  // The values, for a checkpoint; and back. kCorrupt, naming `what`, for another text.
  [[nodiscard]] std::string text() const;
  void restore(std::string_view text, std::string_view what);

 private:
  std::deque<double> values_;  // the oldest first
};

}  // namespace gxp
