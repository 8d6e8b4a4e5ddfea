#include "lib/net/launch/exit_messages.h"

#include <algorithm>

#include "lib/net/store/rank_list.h"

namespace gxp {
namespace {

constexpr std::string_view kStart = "gxp: error: ";

}  // namespace

bool ExitMessages::take(int rank, std::string_view line) {
  if (!line.starts_with(kStart)) return false;
  line.remove_prefix(kStart.size());
  if (line.ends_with('\n')) line.remove_suffix(1);
  all_.push_back({rank, std::string(line)});
  return true;
}

bool ExitMessages::is_echo(const Message& message) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Message& other) {
    return (other.printed && other.cause == message.cause) ||
           message.cause == fmt::format("rank {}: {}", other.rank, other.cause);
  });
}

std::vector<std::string> ExitMessages::take_new(int culprit) {
  std::stable_partition(all_.begin(), all_.end(),
                        [culprit](const Message& message) { return message.rank == culprit; });
  std::vector<std::string> lines;
  for (const Message& message : all_) {
    if (message.printed || is_echo(message)) continue;
    std::vector<int> ranks;
    for (Message& other : all_) {
      if (other.cause != message.cause) continue;
      other.printed = true;
      ranks.push_back(other.rank);
    }
    std::sort(ranks.begin(), ranks.end());
    lines.push_back(fmt::format("[{}] {}{}\n", to_text(ranks), kStart, message.cause));
  }
  return lines;
}

}  // namespace gxp
