#include <atomic>
#include <future>

#include "lib/net/socket/authenticate.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/net/store_job.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

constexpr std::array<std::string_view, 3> kKinds = {"says", "silent", "left"};

// Blames `culprit`, with all answers as the reason: "asked by 1: says a, silent, left".
DiagnosisHooks blame(int culprit) {
  return {[culprit](const std::vector<RankAnswer>& answers, int asked_by) {
            std::string text = fmt::format("asked by {}:", asked_by);
            for (const RankAnswer& answer : answers)
              text += fmt::format(" {}{}", kKinds[size_t(answer.kind)], answer.state);
            return std::optional(Finding{{culprit, text}});
          },
          {}};
}

// Each rank answers "(rank)".
void answer_all(const std::vector<std::unique_ptr<Store>>& ranks) {
  for (const auto& rank : ranks)
    rank->on_inquiry([name = fmt::format("({})", rank->rank())] { return name; });
}

// What each rank takes for the verdict.
std::vector<std::string> verdicts(const std::vector<std::unique_ptr<Store>>& ranks) {
  std::vector<std::string> texts;
  for (const auto& rank : ranks) {
    const auto verdict = rank->wait_verdict(soon());
    texts.push_back(verdict ? fmt::format("{}: {}", verdict->rank, verdict->reason) : "none");
  }
  return texts;
}

// What a survey says of the rank, once it does not answer any more.
RankAnswer::Kind poll_survey(const Job& job, int rank) {
  for (const Deadline deadline = soon(); !deadline.expired();) {
    const auto answers = job.server->survey(50ms);
    if (!answers.empty() && answers[size_t(rank)].kind != RankAnswer::Kind::kState)
      return answers[size_t(rank)].kind;
  }
  return RankAnswer::Kind::kState;
}

}  // namespace

TEST_CASE("every rank's answer makes the verdict, which every rank gets", "[net]") {
  const int world_size = GENERATE(1, 2, 5);
  CAPTURE(world_size);
  const Job job(world_size);
  const auto ranks = job.join_all();
  job.server->set_diagnostics(blame(0));
  answer_all(ranks);
  const FailureVerdict verdict = ranks.back()->inquire(0, "late");
  std::string want = fmt::format("asked by {}:", world_size - 1);
  for (int rank = 0; rank < world_size; ++rank) want += fmt::format(" says({})", rank);
  CHECK(verdict.reason == want);
  for (const std::string& text : verdicts(ranks)) CHECK(text == "0: " + want);
}

TEST_CASE("a rank without an answer and one that has left are told apart", "[net]") {
  const Job job(3);
  const auto ranks = job.join_all();
  job.server->set_diagnostics(blame(2));
  ranks[0]->on_inquiry([] { return std::string("(0)"); });
  ranks[2]->close();
  CHECK(ranks[0]->inquire(1, "late").reason == "asked by 0: says(0) says left");
}

TEST_CASE("a survey tells what each rank says, and blames nobody", "[net]") {
  const Job job(4);  // of which rank 3 never comes
  const auto ranks = job.join_these({0, 2});
  RankProcess stopped(job, 1);
  REQUIRE(stopped.joined());
  answer_all(ranks);
  for (const bool is_stopped : {false, true}) {
    if (is_stopped) stopped.stop();
    const auto answers = job.server->survey(is_stopped ? 100ms : 5000ms);
    REQUIRE(answers.size() == 4);
    CHECK((answers[0].state == "(0)" && answers[2].state == "(2)"));
    CHECK((answers[1].kind == RankAnswer::Kind::kSilent) == is_stopped);
    CHECK(answers[3].kind == RankAnswer::Kind::kAbsent);
  }
  ranks[1]->close();
  CHECK(poll_survey(job, 2) == RankAnswer::Kind::kLeft);
  CHECK_FALSE(ranks[0]->verdict().has_value());
}

TEST_CASE("a stopped process is silent, and the others have their verdict soon", "[net]") {
  const Job job(3);
  const auto ranks = job.join_these({0, 2});
  RankProcess stopped(job, 1);
  REQUIRE(stopped.joined());
  stopped.stop();
  job.server->set_diagnostics(blame(1));
  answer_all(ranks);
  CHECK(ranks[1]->inquire(0, "late").reason == "asked by 2: says(0) silent says(2)");
  CHECK(verdicts(ranks)[0] == verdicts(ranks)[1]);
}

TEST_CASE("without diagnostics, or if they find nothing, the suspicion is the verdict", "[net]") {
  const bool find_nothing = GENERATE(false, true);
  const Job job(2);
  const auto ranks = job.join_all();
  if (find_nothing) {
    job.server->set_diagnostics({[](const auto&, int) { return std::optional<Finding>(); }, {}});
  }
  const FailureVerdict verdict = ranks[0]->inquire(1, "rank 1 is late");
  CHECK(verdict.rank == 1);
  CHECK(verdict.reason == "rank 1 is late");
}

TEST_CASE("a silent rank is the verdict where the answers explain nothing", "[net]") {
  const Job job(3);
  const auto ranks = job.join_these({0, 2});
  RankProcess stopped(job, 1);
  REQUIRE(stopped.joined());
  stopped.stop();
  const FailureVerdict verdict = ranks[1]->inquire(2, "late");
  CHECK(verdict.rank == 1);
  CHECK(verdict.reason.starts_with("it does not respond, its process may be stopped"));
  CHECK(verdict.reason.ends_with("rank 2: late"));
}

TEST_CASE("an unsettled finding is asked again, and stands when time is up", "[net]") {
  const int settled_after = GENERATE(1, 3, 1000);
  const Job job(2);
  const auto ranks = job.join_all();
  std::atomic<int> rounds = 0;
  job.server->set_diagnostics(
      {[&](const auto&, int) {
         return std::optional(Finding{{1, "found"}, ++rounds >= settled_after});
       },
       {}});
  CHECK(ranks[0]->inquire(0, "late").reason == "found");
  job.server->set_diagnostics({});
  CHECK((rounds == settled_after || settled_after == 1000));
}

TEST_CASE("who asks at the same time or afterwards gets the one verdict", "[net]") {
  const Job job(4);
  const auto ranks = job.join_all();
  std::vector<std::future<FailureVerdict>> asked;
  for (const auto& rank : ranks) {
    asked.push_back(std::async(std::launch::async, [&rank] {
      return rank->inquire(rank->rank(), fmt::format("rank {} asks", rank->rank()));
    }));
  }
  const FailureVerdict first = asked[0].get();
  for (size_t i = 1; i < asked.size(); ++i) CHECK(asked[i].get().reason == first.reason);
  CHECK(ranks[0]->inquire(3, "again").reason == first.reason);
}

TEST_CASE("a rank that dies during an inquiry is the verdict, with what it did last", "[net]") {
  const Job job(3);
  const auto ranks = job.join_these({0, 1});
  RankProcess victim(job, 2);
  REQUIRE(victim.joined());
  victim.stop();  // so that the inquiry waits for it
  job.server->set_diagnostics(
      {blame(0).diagnose, [](int rank) { return fmt::format("Rank {} was at work.", rank); }});
  std::promise<void> started;
  ranks[0]->on_inquiry([&] { return started.set_value(), std::string(); });
  auto verdict = std::async(std::launch::async, [&] { return ranks[1]->inquire(0, "late"); });
  started.get_future().wait();
  victim.kill();
  const FailureVerdict found = verdict.get();
  CHECK(found.rank == 2);
  // Between them stands how it ended, if the inquiry still lay unread in its socket.
  CHECK(found.reason.starts_with("its connection ended without a goodbye"));
  CHECK(found.reason.ends_with("; was it killed? Rank 2 was at work."));
}

TEST_CASE("a server that does not answer is the verdict, for the alarms too", "[net]") {
  const SilentServer server;
  int alarms = 0;
  server.rank->on_abort(
      [&](const FailureVerdict& verdict) { alarms += verdict.rank == 0 ? 1 : 100; });
  const FailureVerdict verdict = server.rank->inquire(1, "late");
  CHECK(verdict.rank == 0);
  CHECK(verdict.reason.find("does not answer; is its process stopped") != std::string::npos);
  CHECK(alarms == 1);
  CHECK(error_of([&] { server.rank->get("k", soon()); }).says(verdict.reason));
}
