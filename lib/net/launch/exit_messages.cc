#include "lib/net/launch/exit_messages.h"

#include <algorithm>
#include <charconv>

#include "lib/net/store/rank_list.h"

namespace gxp {
namespace {

constexpr std::string_view kStart = "gxp: error: ";

// What the message of another rank adds to the fact that `culprit` was killed: after the question
// of StoreServer, its last operation.
std::string without_question(const std::string& cause, int culprit) {
  constexpr std::string_view kQuestion = "; was it killed?";
  const std::string name = fmt::format("rank {}:", culprit);
  if (cause.starts_with(name + " it was killed by signal")) return "";  // the launcher's report
  const size_t question = cause.find(kQuestion);
  if (!cause.starts_with(name) || question == std::string::npos) return cause;
  const std::string rest = cause.substr(question + kQuestion.size());
  return rest.empty() ? "" : name + rest;
}

// Of a cause about another rank: "rank 3: ...", or "join rank 0 at ..." and the like.
std::optional<int> first_rank(std::string_view cause) {
  for (const std::string_view start : {"rank ", "join rank ", "connect to rank "}) {
    if (!cause.starts_with(start)) continue;
    int rank = -1;
    const char* end = cause.data() + cause.size();
    const auto read = std::from_chars(cause.data() + start.size(), end, rank);
    if (read.ec != std::errc() || read.ptr == end) return std::nullopt;
    if (*read.ptr == ':' || start != "rank ") return rank;
  }
  return std::nullopt;
}

}  // namespace

bool ExitMessages::take(int rank, std::string_view line) {
  if (!line.starts_with(kStart)) return false;
  line.remove_prefix(kStart.size());
  if (line.ends_with('\n')) line.remove_suffix(1);
  all_.push_back({rank, std::string(line)});
  return true;
}

std::string ExitMessages::cause_of(int rank) const {
  const auto first = std::ranges::find(all_, rank, &Message::rank);
  return first == all_.end() ? "" : first->cause;
}

std::optional<int> ExitMessages::blamed_by(int rank) const {
  for (const Message& message : all_) {
    if (message.rank != rank) continue;
    if (const auto blamed = first_rank(message.cause)) return blamed;
  }
  return std::nullopt;
}

bool ExitMessages::is_echo(const Message& message) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Message& other) {
    return (other.printed && other.cause == message.cause) ||
           message.cause == fmt::format("rank {}: {}", other.rank, other.cause);
  });
}

std::vector<std::string> ExitMessages::take_new(int culprit, bool was_killed) {
  if (was_killed) {
    for (Message& message : all_) message.cause = without_question(message.cause, culprit);
  }
  std::stable_partition(all_.begin(), all_.end(),
                        [culprit](const Message& message) { return message.rank == culprit; });
  std::vector<std::string> lines;
  for (const Message& message : all_) {
    if (message.printed || message.cause.empty() || is_echo(message)) continue;
    std::vector<int> ranks;
    for (Message& other : all_) {
      if (other.cause != message.cause) continue;
      other.printed = true;
      ranks.push_back(other.rank);
    }
    std::sort(ranks.begin(), ranks.end());
    lines.push_back(fmt::format("gxp[{}] error {}\n", to_text(ranks), message.cause));
  }
  return lines;
}

}  // namespace gxp
