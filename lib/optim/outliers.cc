#include "lib/optim/outliers.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <numeric>

#include "lib/base/error.h"

namespace gxp {
namespace {

// Relative to the mean; values that differ by less are equal.
constexpr double kRounding = 1e-12;

}  // namespace

std::optional<double> Outliers::add(double value) {
  const bool is_full = values_.size() == kWindow;
  if (is_full) values_.pop_front();
  values_.push_back(value);
  if (!is_full) return std::nullopt;
  const double mean = std::accumulate(values_.begin(), values_.end(), 0.0) / double(kWindow);
  double squares = 0;
  for (const double other : values_) squares += (other - mean) * (other - mean);
  const double deviation = std::sqrt(squares / double(kWindow));
  return deviation <= kRounding * std::fabs(mean) ? 0 : (value - mean) / deviation;
}

std::string Outliers::text() const { return fmt::format("{}", fmt::join(values_, " ")); }

void Outliers::restore(std::string_view text, std::string_view what) {
  values_.clear();
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    double value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || !std::isfinite(value) || values_.size() == kWindow)
      fail(ErrorKind::kCorrupt, "{}: not a list of at most {} numbers", what, kWindow);
    values_.push_back(value);
    at = next != end && *next == ' ' ? next + 1 : next;
  }
}

}  // namespace gxp
