// Numbers for values of which only equality matters: hosts by name, sets by their first member.
#pragma once

#include <map>
#include <span>
#include <vector>

namespace gxp {

// From 0, in the order in which the values first appear; equal values have equal numbers.
template <class Value>
std::vector<int> number_by_appearance(std::span<const Value> values) {
  std::map<Value, int> numbers;
  std::vector<int> result;
  for (const Value& value : values)
    result.push_back(numbers.try_emplace(value, int(numbers.size())).first->second);
  return result;
}

// The same; empty if all values are equal.
template <class Value>
std::vector<int> number_if_different(std::span<const Value> values) {
  std::vector<int> numbers = number_by_appearance(values);
  for (const int number : numbers) {
    if (number > 0) return numbers;
  }
  return {};
}

}  // namespace gxp
