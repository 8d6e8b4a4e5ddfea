// The keys of one architecture, taken one by one; what is left in the end is not known. Only the
// .cc files of this folder include it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/ckpt/gguf/header.h"

namespace gxp {

// As decimals say it: 0.00001f is 1e-05, not 9.999999747378752e-06.
inline double decimal_value(float number) {
  return std::strtod(fmt::format("{}", number).c_str(), nullptr);
}

class GgufKeyReader {
 public:
  GgufKeyReader(const GgufHeader& header, std::string_view architecture)
      : prefix_(fmt::format("{}.", architecture)) {
    for (auto key = header.keys.lower_bound(prefix_);
         key != header.keys.end() && key->first.starts_with(prefix_); ++key)
      left_.emplace(key->first.substr(prefix_.size()), &key->second);
  }

  [[nodiscard]] const std::string& prefix() const { return prefix_; }

  // Nothing if there is no such key. A value of another kind stays, and so is not known.
  std::optional<int> take_size(std::string_view key, int least = 1) {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    int64_t size = -1;
    if (const auto* number = std::get_if<uint64_t>(value))
      size = int64_t(std::min<uint64_t>(*number, INT64_MAX));
    if (const auto* number = std::get_if<int64_t>(value)) size = *number;
    if (size < least || size > INT32_MAX) return std::nullopt;
    drop(key);
    return int(size);
  }

  std::optional<double> take_number(std::string_view key) {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    std::optional<double> number;
    if (const auto* single = std::get_if<float>(value)) number = decimal_value(*single);
    if (const auto* wide = std::get_if<double>(value)) number = *wide;
    if (number) drop(key);
    return number;
  }

  template <class T>  // bool, std::string
  std::optional<T> take(std::string_view key) {
    const GgufValue* value = find(key);
    if (value == nullptr || !std::holds_alternative<T>(*value)) return std::nullopt;
    T taken = std::get<T>(*value);
    drop(key);
    return taken;
  }

  [[nodiscard]] std::string first_left() const { return left_.empty() ? "" : left_.begin()->first; }

 private:
  [[nodiscard]] const GgufValue* find(std::string_view key) const {
    const auto found = left_.find(key);
    return found == left_.end() ? nullptr : found->second;
  }
  void drop(std::string_view key) { left_.erase(left_.find(key)); }

  std::string prefix_;
  std::map<std::string, const GgufValue*, std::less<>> left_;
};

}  // namespace gxp
