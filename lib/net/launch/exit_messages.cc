#include "lib/net/launch/exit_messages.h"

#include <algorithm>

#include "lib/net/store/rank_list.h"

namespace gxp {
namespace {

constexpr std::string_view kStart = "gxp: error: ";

}  // namespace

bool LastWords::take(int rank, std::string_view line) {
  if (!line.starts_with(kStart)) return false;
  line.remove_prefix(kStart.size());
  if (line.ends_with('\n')) line.remove_suffix(1);
  all_.push_back({rank, std::string(line)});
  return true;
}

bool LastWords::is_echo(const Words& words) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Words& other) {
    return (other.told && other.cause == words.cause) ||
           words.cause == fmt::format("rank {}: {}", other.rank, other.cause);
  });
}

std::vector<std::string> LastWords::tell(int culprit) {
  std::stable_partition(all_.begin(), all_.end(),
                        [culprit](const Words& words) { return words.rank == culprit; });
  std::vector<std::string> lines;
  for (const Words& words : all_) {
    if (words.told || is_echo(words)) continue;
    std::vector<int> ranks;
    for (Words& other : all_) {
      if (other.cause != words.cause) continue;
      other.told = true;
      ranks.push_back(other.rank);
    }
    std::sort(ranks.begin(), ranks.end());
    lines.push_back(fmt::format("[{}] {}{}\n", to_text(ranks), kStart, words.cause));
  }
  return lines;
}

}  // namespace gxp
