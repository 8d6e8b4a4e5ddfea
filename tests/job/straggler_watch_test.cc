#include "lib/job/status/straggler_watch.h"

#include "tests/catch.h"

namespace gxp {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Rank 0 entered an all-reduce at `entered_s` and left it at `left_s`; 0: not yet.
FlightRecord waiting_record(double now_s, double entered_s, double left_s = 0) {
  FlightRecord record{.rank = 0, .world_size = 3, .host_name = "a"};
  record.activity = Activity::kCompute;
  record.step = 5;
  record.taken_ns = int64_t(now_s * kSecond);
  record.entries = {{.call = Call{.collective = Collective::kAllReduce, .sequence = 1},
                     .algorithm = {},
                     .entered_ns = int64_t(entered_s * kSecond),
                     .left_ns = int64_t(left_s * kSecond)}};
  if (left_s > 0) record.entries[0].state = FlightEntry::State::kDone;
  record.groups[0] = {2, 0, 0, 3};
  return record;
}

// Rank 0 waits, rank 1 likewise, and rank 2 is in `activity`; none: it does not answer.
JobAnswers answers_of(const FlightRecord& own, std::optional<Activity> activity) {
  JobAnswers answers;
  answers.known[2] = {"b", 12};
  answers.ranks.resize(3);
  answers.ranks[0] = answers.ranks[1] = {RankAnswer::Kind::kState, own};
  if (!activity) return answers;
  FlightRecord late{.rank = 2, .world_size = 3, .host_name = "b"};
  late.activity = *activity;
  late.step = 5;
  late.taken_ns = own.taken_ns;
  late.groups[0] = {1, 0, 0, 3};
  answers.ranks[2] = {RankAnswer::Kind::kState, late};
  return answers;
}

struct Watched {
  StragglerWatch watch;
  TrainingFacts facts;
  int asked = 0;

  // Rank 0 waits from second 10 on, and leaves at second `until`. What the watch says, "" for nothing.
  std::string wait(double until, std::optional<Activity> activity,
                   Activity own = Activity::kCompute) {
    std::string said;
    const auto look = [&](FlightRecord record) {
      record.activity = own;
      const auto ask = [&] {
        ++asked;
        return answers_of(record, activity);
      };
      said += watch.look(record, facts, ask).value_or("");
    };
    for (double now = 10; now < until; now += 0.25) look(waiting_record(now, 10));
    look(waiting_record(until + 0.1, 10, until));
    return said;
  }
};

}  // namespace

TEST_CASE("a rank that the others wait for is told with its phase, once", "[job]") {
  Watched job;
  job.facts.steps_made = 3;
  CHECK(job.wait(12.5, Activity::kCompute) ==
        "rank 2 on host b, in compute of step 5, kept other ranks waiting for 2.5 s");
  CHECK(job.asked == 1);
  CHECK(job.wait(13, Activity::kData).starts_with("rank 2 on host b, in data of step 5,"));
  CHECK(job.wait(13, std::nullopt) ==
        "rank 2 on host b, whose process did not respond, kept other ranks waiting for 3.0 s");
}

TEST_CASE("waits that are short, in a first step, or for a save are not told", "[job]") {
  Watched job;
  CHECK(job.wait(15, Activity::kCompute).empty());
  job.facts.steps_made = 3;
  CHECK(job.wait(10.9, Activity::kCompute).empty());
  CHECK(job.wait(15, Activity::kCompute, Activity::kSave).empty());
  CHECK(job.wait(15, Activity::kCompute, Activity::kEvaluate).empty());
  CHECK(job.wait(15, Activity::kSave).empty());
  job.facts.seconds_per_step = 8;
  CHECK(job.wait(13.5, Activity::kCompute).empty());
}

TEST_CASE("warnings about stragglers are few", "[job]") {
  Watched job;
  job.facts.steps_made = 3;
  int told = 0;
  for (int i = 0; i < 2 * StragglerWatch::kMostWarnings; ++i)
    if (!job.wait(13, Activity::kCompute).empty()) ++told;
  CHECK(told == StragglerWatch::kMostWarnings);
}

}  // namespace gxp
