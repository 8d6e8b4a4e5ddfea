#include "lib/topo/model/cpu_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lib/topo/model/text_parts.h"

namespace gxp {
std::optional<CpuSet> CpuSet::parse_map(std::string_view text) {
  CpuSet set;
  const auto commas = std::ranges::count(text, ',');
  if (text.empty() || commas >= kMaxCpus / 32) return std::nullopt;
  for (std::string_view word : split(text, ',')) {
    if (word == "0xf...f") continue;
    if (word.starts_with("0x")) word.remove_prefix(2);
    const auto bits = word.empty() ? 0u : whole_number<uint32_t>(word, 16);
    if (!bits) return std::nullopt;
    set.words_.insert(set.words_.begin(), *bits);
  }
  return set;
}

std::optional<CpuSet> CpuSet::parse_list(std::string_view text) {
  CpuSet set;
  if (text.empty()) return set;
  for (const std::string_view range : split(text, ',')) {
    const size_t dash = range.find('-');
    const auto first = whole_number<int>(range.substr(0, dash));
    const auto last = dash == range.npos ? first : whole_number<int>(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMaxCpus) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) set.add(cpu);
  }
  return set;
}

void CpuSet::add(int cpu) {
  const auto index = size_t(cpu) / 32;
  if (index >= words_.size()) words_.resize(index + 1);
  words_[index] |= 1u << (cpu % 32);
}

int CpuSet::count() const {
  int total = 0;
  for (const uint32_t bits : words_) total += std::popcount(bits);
  return total;
}

bool CpuSet::intersects(const CpuSet& other) const { return !common(other).empty(); }
bool CpuSet::within(const CpuSet& other) const { return common(other).count() == count(); }

CpuSet CpuSet::common(const CpuSet& other) const {
  CpuSet both;
  for (size_t i = 0; i < words_.size(); ++i) both.words_.push_back(words_[i] & other.word(i));
  return both;
}

std::vector<int> CpuSet::cpus() const {
  std::vector<int> numbers;
  for (int cpu = 0; cpu < int(words_.size()) * 32; ++cpu) {
    if ((word(size_t(cpu) / 32) >> (cpu % 32) & 1) != 0) numbers.push_back(cpu);
  }
  return numbers;
}

std::string CpuSet::to_map() const {
  if (words_.empty()) return "00000000";
  std::string text;
  for (size_t i = words_.size(); i-- > 0;)
    text += fmt::format("{:08x}{}", words_[i], i == 0 ? "" : ",");
  return text;
}

std::string CpuSet::to_list() const {
  const std::vector<int> numbers = cpus();
  std::string text;
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[begin]);
    if (end - begin > 1) text += fmt::format("-{}", numbers[end - 1]);
    begin = end;
  }
  return text;
}

}  // namespace gxp
