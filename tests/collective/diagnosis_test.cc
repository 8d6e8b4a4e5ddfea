#include "lib/collective/flight/diagnosis.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <memory>

#include "lib/base/error.h"
#include "tests/catch.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNow = 1000 * kSecond;

Call all_reduce(uint32_t sequence, size_t count = 4096) {
  return {.collective = Collective::kAllReduce,
          .dtype = DType::kF32,
          .op = ReduceOp::kSum,
          .count = count,
          .sequence = sequence};
}

Call broadcast(uint32_t sequence) {
  return {.collective = Collective::kBroadcast, .count = 16, .sequence = sequence};
}

// A rank in words. Operations follow each other; the last is the one it is in, if it was not left.
class Rank {
 public:
  Rank& group(int number, int leader, int size) {
    record_.groups[number] = {
        .since = uint32_t(record_.entries.size()), .leader = leader, .size = size};
    return *this;
  }
  // It is in `call`, at a step, waiting for a rank.
  Rank& in(const Call& call, int step = -1, int waits_for = -1, int group = 0) {
    FlightEntry& entry = add(step, waits_for);
    entry.call = call;
    entry.group = uint8_t(group);
    entry.leader = record_.groups[group].leader;
    entry.algorithm = "ring";
    record_.groups[group].entered = call.sequence + 1;
    return *this;
  }
  Rank& in(const PeerCall& call, int waits_for) {
    add(0, waits_for).call = call;
    return *this;
  }
  Rank& did(const Call& call, int group = 0) { return in(call, 0, -1, group).left(); }
  Rank& left(FlightEntry::State state = FlightEntry::State::kDone) {
    record_.entries.back().state = state;
    record_.entries.back().left_ns = kNow - 3 * kSecond;
    return *this;
  }
  Rank& by(std::string algorithm) {
    record_.entries.back().algorithm = std::move(algorithm);
    return *this;
  }
  operator RankReport() const { return {RankAnswer::Kind::kState, record_}; }

 private:
  FlightEntry& add(int step, int waits_for) {
    FlightEntry entry;
    entry.number = record_.entries.size();
    entry.entered_ns = kNow - 5 * kSecond;
    entry.step = step;
    entry.waits_for = waits_for;
    return record_.entries.emplace_back(entry);
  }
  FlightRecord record_{.taken_ns = kNow, .groups = {{0, {.leader = 0, .size = 8}}}};
};

RankReport silent() { return {RankAnswer::Kind::kSilent, {}}; }
RankReport left() { return {RankAnswer::Kind::kLeft, {}}; }
RankReport without_recorder() { return {RankAnswer::Kind::kState, {}}; }
Rank idle(uint32_t last) { return Rank().did(all_reduce(last)); }

PeerCall send_to(int rank) { return {.to = rank, .count = 64, .sequence = 3}; }
PeerCall receive_from(int rank) {
  return {.kind = PeerCall::Kind::kReceive, .from = rank, .count = 64, .sequence = 3};
}

struct DiagnosisCase {
  std::string name;
  std::vector<RankReport> ranks;
  int asked_by;
  int culprit;
  std::vector<std::string> says;
  bool settled = true;
};

// clang-format off
const std::vector<DiagnosisCase>& cases() {
  static const std::vector<DiagnosisCase> all = {
  {"two ranks, one has not entered", {Rank().in(all_reduce(17), 0, 1), idle(16)}, 0, 1,
   {"it has not entered all-reduce 17 (4096 f32, sum), 16 KiB; its last operation: "
    "all-reduce 16 (4096 f32, sum) ended 3.0 s before; "
    "waiting for up to 5.0 s: rank 0 in step 0 for rank 1"}},
  {"a chain of waiting leads to who has not entered",
   {Rank().in(all_reduce(17), 2, 3), Rank().in(all_reduce(17), 1, 0), idle(16),
    Rank().in(all_reduce(17), 0, 2)}, 1, 2,
   {"it has not entered all-reduce 17", "rank 0 in step 2 for rank 3, rank 1 in step 1 for rank 0, "
    "rank 3 in step 0 for rank 2"}},
  {"several have not entered",
   {idle(16), Rank().in(all_reduce(17), 0, 0), Rank(), Rank().in(all_reduce(17), 0, 1), idle(16)},
   3, 0, {"it has not entered all-reduce 17", "; rank 2, 4: not in it either;"}},
  {"a rank that has never called anything", {Rank().in(all_reduce(0), 0, 1), Rank()}, 0, 1,
   {"it has not entered all-reduce 0", "its last operation: nothing yet"}},
  {"a rank that is late by two operations",
   {Rank().in(all_reduce(17)), Rank().in(all_reduce(17)), idle(15)}, 0, 2,
   {"it has not entered all-reduce 17", "all-reduce 15 (4096 f32, sum) ended 3.0 s before"}},
  {"a stopped rank", {Rank().in(all_reduce(17), 1, 1), silent(), Rank().in(all_reduce(17), 0, 1)},
   0, 1, {"it does not respond, its process may be stopped, or its host out of reach; needed for all-reduce 17 (4096 f32, "
          "sum), 16 KiB; waiting for up to 5.0 s"}},
  {"two stopped ranks", {Rank().in(all_reduce(17), 1, 2), silent(), silent()}, 0, 2,
   {"it does not respond", "; rank 1: no response either;"}},
  {"a stopped rank behind a waiting one",
   {Rank().in(all_reduce(17), 1, 1), Rank().in(all_reduce(17), 1, 2), silent()}, 0, 2,
   {"it does not respond"}},
  {"a rank that has left", {Rank().in(all_reduce(17), 0, 1), left()}, 0, 1,
   {"it has left the job normally; needed for all-reduce 17"}},
  {"a rank that tells nothing", {Rank().in(all_reduce(17), 0, 1), without_recorder()}, 0, 1,
   {"it does not report its state; needed for all-reduce 17"}},
  {"a rank that has failed in it",
   {Rank().in(all_reduce(17), 0, 1),
    Rank().in(all_reduce(17), 0, 0).left(FlightEntry::State::kFailed)}, 0, 1,
   {"it has failed in all-reduce 17 (4096 f32, sum), 16 KiB, where rank 0 waits for it"}},
  {"a lost message",
   {Rank().in(broadcast(17), 0, 1), Rank().did(broadcast(17))}, 0, 1,
   {"it has done its part of broadcast 17 (16 u8 from rank 0), 16 B, yet rank 0 waits for it, "
    "a message may be lost; "}},
  {"a rank that works for ever", {Rank().in(all_reduce(17), 0, 1), Rank().in(all_reduce(17), 4)},
   0, 1, {"it waits for nobody, but does not finish its part of all-reduce 17", "in all-reduce 17 "
          "(4096 f32, sum) for 5.0 s (ring, step 4)"}},

  {"one of four calls something else",
   {Rank().in(all_reduce(17), 0, 3), Rank().in(all_reduce(17), 0, 0),
    Rank().in(broadcast(17), 0, 0), Rank().in(all_reduce(17), 0, 2)}, 0, 2,
   {"it called broadcast 17 (16 u8 from rank 0); rank 0, 1, 3 called all-reduce 17 (4096 f32, "
    "sum)"}},
  {"another count", {Rank().in(all_reduce(17, 4097)), Rank().in(all_reduce(17)),
                     Rank().in(all_reduce(17))}, 1, 0,
   {"it called all-reduce 17 (4097 f32, sum); rank 1, 2 called all-reduce 17 (4096 f32, sum)"}},
  {"another algorithm", {Rank().in(all_reduce(17)), Rank().in(all_reduce(17)).by("direct")}, 0, 1,
   {"it called all-reduce 17 (4096 f32, sum) by direct; rank 0 called all-reduce 17 (4096 f32, "
    "sum) by ring"}},
  {"a root that has gone on",
   {Rank().did(broadcast(17)).in(all_reduce(18), 0, 1), Rank().in(all_reduce(17), 0, 2),
    Rank().in(all_reduce(17), 0, 1)}, 1, 0,
   {"it called broadcast 17 (16 u8 from rank 0); rank 1, 2 called all-reduce 17"}},
  {"half of the ranks against half",
   {Rank().in(all_reduce(17)), Rank().in(broadcast(17)), Rank().in(broadcast(17)),
    Rank().in(all_reduce(17))}, 1, 1,
   {"it and rank 2 called broadcast 17 (16 u8 from rank 0); rank 0, 3 called all-reduce 17"}},
  {"one against one, with others to come",
   {Rank().in(all_reduce(17)), Rank().in(broadcast(17)), idle(16)}, 0, 1,
   {"it called broadcast 17"}, false},
  {"one against one, and the third is stopped",
   {Rank().in(all_reduce(17)), Rank().in(broadcast(17)), silent()}, 0, 1,
   {"it called broadcast 17"}},

  {"a send and a receive that do not match", {Rank().in(receive_from(1), 1), idle(3)}, 0, 1,
   {"rank 0 waits for it in receive 3 (64 B from rank 1); its last operation: all-reduce 3"}},
  {"a message that is on its way is no deadlock",
   {Rank().in(all_reduce(17), 2, 1), Rank().did(all_reduce(17)).in(all_reduce(18), 0, 0)}, 1, 1,
   {"rank 0 has received no message from it in all-reduce 17 (4096 f32, sum), 16 KiB, of which it "
    "has done its part: is a link slow or cut, or was a message lost?"}},
  {"two ranks that both send first", {Rank().in(send_to(1), 1), Rank().in(send_to(0), 0)}, 1, 0,
   {"deadlock, the ranks wait for each other in a circle: rank 0 in send 3 (64 B to rank 1) waits "
    "for rank 1, rank 1 in send 3 (64 B to rank 0) waits for rank 0"}},
  {"a circle of three, and one before it",
   {Rank().in(receive_from(2), 2), Rank().in(receive_from(3), 3), Rank().in(receive_from(1), 1),
    Rank().in(receive_from(2), -1)}, 0, 1,
   {"circle: rank 1 in receive 3 (64 B from rank 3) waits for rank 3, rank 3 in receive 3 (64 B "
    "from rank 2) waits for rank 2, rank 2 in receive 3 (64 B from rank 1) waits for rank 1"}},
  {"a collective against a message",
   {Rank().in(all_reduce(17), 0, 1), Rank().in(send_to(0), 0)}, 0, 0,
   {"deadlock", "rank 0 in all-reduce 17 (4096 f32, sum) waits for rank 1, rank 1 in send 3"}},
  {"two groups in another order",
   {Rank().group(1, 0, 2).in(all_reduce(0), 0, 1, 1),
    Rank().group(1, 0, 2).in(all_reduce(0), 0, 0)}, 0, 0,
   {"deadlock", "rank 0 in all-reduce 0 (4096 f32, sum) in group 1 waits for rank 1"}},
  {"all in one operation, no message moves",
   {Rank().in(all_reduce(17), 3, 2), Rank().in(all_reduce(17), 2, 0),
    Rank().in(all_reduce(17), 3, 1)}, 2, 0,
   {"rank 1 has received no message from it in all-reduce 17", "in a circle: is a link slow"}},
  {"a circle hides a missing rank",
   {Rank().in(all_reduce(17), 0, 1), Rank().in(all_reduce(17), 0, 0), idle(16)}, 0, 2,
   {"it has not entered all-reduce 17"}},

  {"a group waits for a member that is busy in another",
   {Rank().group(1, 0, 2).in(all_reduce(5), 0, 1, 1),
    Rank().group(1, 0, 2).did(all_reduce(4), 1).in(all_reduce(9), 0, 2), idle(8)}, 0, 2,
   {"it has not entered all-reduce 9", "rank 0 in step 0 for rank 1 in all-reduce 5 (4096 f32, "
    "sum) in group 1"}},
  {"groups of one number are not compared",
   {Rank().group(1, 0, 2).in(all_reduce(5), 0, 1, 1), Rank().group(1, 0, 2).did(all_reduce(4), 1),
    Rank().group(1, 2, 2).in(broadcast(5), 0, 3, 1),
    Rank().group(1, 2, 2).in(broadcast(5), 0, 2, 1)}, 0, 1,
   {"it has not entered all-reduce 5 (4096 f32, sum) in group 1"}},
  {"a group of an earlier split is not compared",
   {Rank().group(1, 0, 2).in(all_reduce(0), 0, 1, 1),
    Rank().group(1, 0, 2).did(broadcast(0), 1).group(1, 0, 2)}, 0, 1,
   {"it has not entered all-reduce 0 (4096 f32, sum) in group 1"}},
  {"who asked is done meanwhile", {idle(17), Rank().in(all_reduce(17), 0, 2), idle(16)}, 0, 2,
   {"it has not entered all-reduce 17"}},
  {"an impossible rank is waited for", {Rank().in(all_reduce(17), 0, 77), idle(16)}, 0, 1,
   {"it has not entered all-reduce 17"}},
  {"alone", {Rank().in(all_reduce(17), 1)}, 0, 0, {"it waits for nobody"}},
  };
  return all;
}
// clang-format on

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Four ranks in all-reduce 7, as threads but for rank 3, a process that then ends itself by
// `signal`; 0: it is a thread that never enters.
class FourRanks {
 public:
  explicit FourRanks(int signal)
      : directory_(std::filesystem::temp_directory_path() /
                   fmt::format("gxp-diagnosis-{}-{}", ::getpid(), signal)),
        listener_(listen_tcp({"127.0.0.1", 0})),
        endpoint_(local_endpoint(listener_.get())),
        child_(signal == 0 ? 0 : ::fork()) {  // before there are threads
    if (child_ == 0 && signal != 0) be_rank_3(signal);
    server_ = std::make_unique<StoreServer>(std::move(listener_), kRanks, secret_);
    for (int rank = 0; rank < (signal == 0 ? kRanks : 3); ++rank) join(rank);
    stores_[0]->set("go", "");
    int status = 0;
    if (child_ != 0) ::waitpid(child_, &status, WUNTRACED);
    if (!WIFSTOPPED(status)) child_ = 0;  // it is gone
  }
  ~FourRanks() {
    stores_.clear();
    if (child_ != 0) ::kill(child_, SIGKILL);
    if (child_ != 0) ::waitpid(child_, nullptr, 0);
    std::filesystem::remove_all(directory_);
  }
  // The causes that ranks 0 to 2 find, which fail at the same time.
  std::vector<FailureVerdict> find_causes() {
    std::vector<std::future<FailureVerdict>> finding;
    for (int rank = 0; rank < 3; ++rank) {
      finding.push_back(std::async(std::launch::async, [this, rank] {
        return stores_[size_t(rank)]->inquire(rank, "no idea");
      }));
    }
    std::vector<FailureVerdict> verdicts;
    for (auto& verdict : finding) verdicts.push_back(verdict.get());
    return verdicts;
  }

 private:
  static constexpr int kRanks = 4;

  void join(int rank) {
    auto& recorder =
        *recorders_.emplace_back(std::make_unique<FlightRecorder>(rank, kRanks, directory_));
    auto& store = *stores_.emplace_back(
        std::make_unique<Store>(endpoint_, rank, kRanks, secret_, Deadline::after(20s)));
    connect_diagnosis(store, rank == 0 ? server_.get() : nullptr, recorder, directory_);
    if (rank == 3 && child_ == 0) return;
    recorder.enter(all_reduce(7), "ring");
    recorder.step(rank, (rank + kRanks - 1) % kRanks);
  }
  [[noreturn]] void be_rank_3(int signal) {
    child_ = ::getpid();
    join(3);
    stores_[0]->get("go", Deadline::after(20s));
    ::raise(signal);
    for (;;) ::pause();
  }

  std::string directory_;
  Secret secret_ = Secret::generate();
  Fd listener_;
  Endpoint endpoint_;
  pid_t child_;  // 0: none
  std::unique_ptr<StoreServer> server_;
  std::vector<std::unique_ptr<FlightRecorder>> recorders_;  // outlive the stores
  std::vector<std::unique_ptr<Store>> stores_;
};

}  // namespace

TEST_CASE("the diagnosis names the culprit and why", "[collective]") {
  for (const DiagnosisCase& situation : cases()) {
    CAPTURE(situation.name);
    const auto finding = diagnose(situation.ranks, situation.asked_by);
    REQUIRE(finding.has_value());
    CAPTURE(finding->verdict.reason);
    CHECK(finding->verdict.rank == situation.culprit);
    CHECK(finding->settled == situation.settled);
    for (const std::string& text : situation.says) CHECK(says(finding->verdict.reason, text));
  }
}

TEST_CASE("whoever asks and whichever rank is missing, it is named", "[collective]") {
  const int world_size = GENERATE(2, 3, 4, 5, 8);
  for (int missing = 0; missing < world_size; ++missing) {
    std::vector<RankReport> ranks;  // a ring: each waits for the one before it
    for (int rank = 0; rank < world_size; ++rank)
      ranks.push_back(Rank().in(all_reduce(3), 1, (rank + world_size - 1) % world_size));
    for (const RankReport& report : {RankReport(idle(2)), silent(), left(), without_recorder()}) {
      ranks[size_t(missing)] = report;
      for (int asked_by = 0; asked_by < world_size; ++asked_by)
        CHECK(diagnose(ranks, asked_by)->verdict.rank == missing);
    }
    ranks[size_t(missing)] = Rank().in(broadcast(3), 1, 0);
    if (world_size > 2) CHECK(diagnose(ranks, 0)->verdict.rank == missing);
  }
}

TEST_CASE("there is nothing to find where no rank is in an operation", "[collective]") {
  CHECK_FALSE(diagnose({}, 0).has_value());
  const std::vector<RankReport> ranks = {idle(1), silent(), left(), without_recorder()};
  CHECK_FALSE(diagnose(ranks, 0).has_value());
  CHECK_FALSE(diagnose(ranks, 99).has_value());
}

TEST_CASE("a long list of ranks is cut", "[collective]") {
  std::vector<RankReport> ranks(100, Rank().in(all_reduce(1), 0, 99));
  ranks[99] = idle(0);
  const std::string text = diagnose(ranks, 0)->verdict.reason;
  CHECK(says(text, "rank 15 in step 0 for rank 99 and 83 more"));
}

TEST_CASE("ranks that wait have one verdict: a late, a stopped and a killed rank", "[collective]") {
  struct End {
    int signal;
    std::string reason;
  };
  const End end =
      GENERATE(End{0, "it has not entered all-reduce 7 (4096 f32, sum)"},
               End{SIGSTOP, "it does not respond"},
               End{SIGKILL, "was it killed? Its last operation: in all-reduce 7 (4096 f32"});
  FourRanks ranks(end.signal);
  for (const FailureVerdict& verdict : ranks.find_causes()) {
    CAPTURE(end.signal, verdict.reason);
    CHECK(verdict.rank == 3);
    CHECK(says(verdict.reason, end.reason));
    CHECK(verdict.reason == ranks.find_causes()[0].reason);
  }
}
