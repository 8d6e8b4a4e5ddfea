#include "lib/job/status/straggler_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/collective/flight/diagnosis.h"

namespace gxp {
namespace {

constexpr double kShortestWait = 1;  // seconds

double seconds_between(int64_t from_ns, int64_t to_ns) {
  return double(std::max<int64_t>(to_ns - from_ns, 0)) / 1e9;
}

bool is_in_step(Activity activity) {
  return activity == Activity::kCompute || activity == Activity::kData;
}

int64_t last_change(const FlightRecord& record) {
  if (record.entries.empty()) return record.activity_since_ns;
  const FlightEntry& last = record.entries.back();
  return std::max({record.activity_since_ns, last.entered_ns, last.left_ns});
}

// When the record went on after its change at `ns`.
int64_t first_change_after(const FlightRecord& record, int64_t ns) {
  int64_t first = last_change(record);
  for (const FlightEntry& entry : record.entries)
    for (const int64_t change : {entry.entered_ns, entry.left_ns})
      if (change > ns) first = std::min(first, change);
  return first;
}

double longest_wait(const std::vector<RankReport>& ranks, int culprit) {
  double longest = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const FlightEntry* entry = running_entry(ranks[rank]);
    if (entry != nullptr && int(rank) != culprit)
      longest = std::max(longest, seconds_between(entry->entered_ns, ranks[rank].record->taken_ns));
  }
  return longest;
}

// "rank 2 on host a, in compute of step 7"; nothing where it is not late: it has come, or it saves.
std::optional<std::string> describe_straggler(const std::vector<RankReport>& ranks, int culprit,
                                              const std::string& host) {
  const RankReport& rank = ranks[size_t(culprit)];
  const std::string where = host.empty() ? "" : " on host " + host;
  if (rank.kind == RankAnswer::Kind::kSilent)
    return fmt::format("rank {}{}, whose process did not respond,", culprit, where);
  if (!rank.record || !is_in_step(rank.record->activity) || running_entry(rank) != nullptr)
    return std::nullopt;
  return fmt::format("rank {}{}, in {} of step {},", culprit, where,
                     to_string(rank.record->activity), rank.record->step);
}

}  // namespace

std::optional<std::string> StragglerWatch::count(std::string text) {
  if (++warnings_ > kMostWarnings) return std::nullopt;
  if (warnings_ == kMostWarnings) text += "; later waits are not logged";
  return text;
}

// The ranks wait, since rank 0's record has changed last.
void StragglerWatch::begin(int64_t changed_ns, double limit, const JobAnswers& answers) {
  const int64_t now = looked_ns_;
  const auto finding = diagnose(answers.ranks, -1);
  const int culprit = finding ? finding->verdict.rank : -1;
  const double waited = longest_wait(answers.ranks, culprit);
  ask_again_ns_ = now + int64_t((limit - waited) * 1e9);
  if (!finding || waited < limit) return;  // rank 0 computes, and nobody waits yet
  const std::string host = answers.place_of(culprit).host;
  episode_ = Episode{changed_ns, describe_straggler(answers.ranks, culprit, host).value_or(""),
                     waited, now};
}

std::optional<std::string> StragglerWatch::look(const FlightRecord& own, const TrainingFacts& facts,
                                                const std::function<JobAnswers()>& ask) {
  const int64_t now = own.taken_ns, changed = last_change(own);
  const double pause = looked_ns_ == 0 ? 0 : seconds_between(looked_ns_, now);
  looked_ns_ = now;
  if (episode_ && episode_->changed_ns != changed) {
    const Episode over = *std::exchange(episode_, std::nullopt);
    const int64_t end = first_change_after(own, over.changed_ns);
    if (!over.text.empty())
      return count(fmt::format("{} kept other ranks waiting for {:.1f} s", over.text,
                               over.waited_s + seconds_between(over.asked_ns, end)));
  }
  const double limit = std::max(kShortestWait, facts.seconds_per_step / 2);
  if (facts.steps_made == 0 || !is_in_step(own.activity) || own.world_size == 1)
    return std::nullopt;
  // This thread, too, stands still while the process is stopped.
  if (pause > limit)
    return count(
        fmt::format("rank {} on host {} did not run for {:.1f} s: its process or host was stopped, "
                    "or had no CPU",
                    own.rank, own.host_name, pause));
  if (!episode_ && seconds_between(changed, now) >= limit && now >= ask_again_ns_)
    begin(changed, limit, ask());
  return std::nullopt;
}

}  // namespace gxp
