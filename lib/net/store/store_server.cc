#include "lib/net/store/store_server.h"

#include <pthread.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/base/thread.h"
#include "lib/net/store/blame_tracker.h"
#include "lib/net/store/inquiry.h"
#include "lib/net/store/rank_list.h"
#include "lib/net/store/store_clients.h"
#include "lib/net/store/store_table.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

constexpr auto kAccusationGrace = 100ms;
constexpr auto kFlushTime = 1s;
constexpr auto kLatecomerTime = 1s;  // for ranks on their way to hear the verdict
constexpr auto kSurveyGrace = 50ms;  // for this thread to come to it
constexpr int kMaxWarnings = 8;      // about refused clients: garbage must not fill the log

}  // namespace

// Everything but what `mutex_` guards belongs to the thread.
class StoreServer::Loop {
 public:
  Loop(Fd listener, int world_size, const Secret& secret, Deadline::Duration silence)
      : clients_(std::move(listener), secret, silence),
        world_size_(world_size),
        table_(world_size, [this](int rank, uint32_t request, const std::string& value) {
          const auto member = members_.find(rank);
          if (member == members_.end()) return;  // it has left meanwhile
          member->second->send({FrameType::kAnswer, "", value, request, 0});
        }) {
    thread_ = start_thread("gxp-store", [this](const std::stop_token& stop) { run(stop); });
  }

  ~Loop() {
    thread_.request_stop();
    clients_.wake();
  }

  [[nodiscard]] int port() const { return clients_.port(); }

  void set_diagnostics(DiagnosisHooks diagnostics) {
    const std::lock_guard lock(diagnostics_mutex_);
    diagnostics_ = std::move(diagnostics);
  }

  [[nodiscard]] std::vector<int> members() const {
    const std::lock_guard lock(mutex_);
    return present_;
  }

  [[nodiscard]] bool has_failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
  }

  std::vector<RankAnswer> survey(Deadline::Duration patience) {
    std::unique_lock lock(mutex_);
    surveyed_.clear();
    survey_patience_ = patience;
    clients_.wake();
    const Deadline deadline = Deadline::after(patience + kSurveyGrace);
    deadline.wait(changed_, lock, [this] { return !surveyed_.empty(); });
    survey_patience_.reset();
    return std::exchange(surveyed_, {});
  }

  bool wait_goodbyes(std::optional<int> ranks, Deadline deadline) {
    const int wanted = ranks.value_or(world_size_);
    std::unique_lock lock(mutex_);
    deadline.wait(changed_, lock, [&] { return failed_ || left_ >= wanted; });
    return !failed_ && left_ >= wanted;
  }

 private:
  void run(const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "gxp-store");
    set_log_rank(0);
    try {
      while (!stop.stop_requested()) serve(std::nullopt);
      finish();
    } catch (const std::exception& error) {
      log_error("store: {}", error.what());  // and the clients see their connections end
    }
    clients_.drop_all();
  }

  // The first round takes what has arrived already, which may be a failure of rank 0 itself.
  void finish() {
    serve(Deadline::after(0s));
    if (cause_.pending()) settle_accusations();
    const Deadline latecomers = Deadline::after(kLatecomerTime);
    // ends: at the deadline
    while (cause_.verdict() && !all_known() && !latecomers.expired()) serve(latecomers);
    for (auto& [_, member] : members_) member->send({FrameType::kGoodbye, "", "", 0, 0});
    clients_.stop_listening();
    const Deadline deadline = Deadline::after(kFlushTime);
    while (!deadline.expired() && clients_.has_unsent()) serve(deadline);
  }

  // Waits for work until the deadline, if there is one, and does what there is.
  void serve(std::optional<Deadline> deadline) {
    for (StoreConnection* client : clients_.wait(earliest(deadline))) serve_client(*client);
    if (all_known()) clients_.stop_listening();
    if (grace_ && grace_->expired()) settle_accusations();
    if (inquiry_) advance_inquiry();
    advance_survey();
    try {
      clients_.finish_round([this](StoreConnection& client) { lose(client); });
    } catch (const Error& error) {  // nobody else can come in
      cause_.report(0, 0, error.what());
      follow_cause();
    }
  }

  [[nodiscard]] bool all_known() const { return int(known_.size()) == world_size_; }

  // The first of the deadline and the times at which this thread acts without a request.
  [[nodiscard]] std::optional<Deadline> earliest(std::optional<Deadline> deadline) const {
    for (const auto& due : {grace_, inquiry_ ? std::optional(inquiry_->wake_at()) : std::nullopt,
                            survey_ ? std::optional(survey_->end) : std::nullopt}) {
      if (due && (!deadline || due->is_before(*deadline))) deadline = due;
    }
    return deadline;
  }

  // A client that breaks the protocol is dropped; if it is a rank, that rank is lost.
  void serve_client(StoreConnection& client) {
    try {
      take_requests(client);
    } catch (const Tampered& tampered) {
      expel(client, tampered.what());
    } catch (const Error& error) {
      if (client.member) return expel(client, error.what());
      if (++refusals_ <= kMaxWarnings) log_warn("store: refused a client: {}", error.what());
      // Our proof may still wait to be sent: it tells a client of another secret what is wrong.
      (void)client.flush();
      lose(client);
    }
  }

  void take_requests(StoreConnection& client) {
    const bool open = client.receive();
    while (!client.leaving) {
      const std::optional<Frame> frame = client.next_frame();
      if (!frame) break;
      if (client.member)
        handle(client, *frame);
      else
        join(client, *frame);
    }
    if (!open) lose(client, client.why());
  }

  void join(StoreConnection& client, const Frame& frame) {
    if (frame.type == FrameType::kAbsent) return take_absence(client, frame.value);
    std::string why;
    if (frame.type != FrameType::kJoin)
      why = "it did not ask to join";
    else if (frame.rank != world_size_)
      why = fmt::format("its world size is {}, that of rank 0 {}", frame.rank, world_size_);
    else if (client.rank() >= world_size_)
      why = fmt::format("there are {} ranks", world_size_);
    else if (members_.contains(client.rank()) || departed_.contains(client.rank()))
      why = "that rank has already joined; were two processes given the same rank?";
    if (!why.empty()) {
      client.send({FrameType::kRefused, "", why, 0, 0});
      client.leaving = true;
      if (++refusals_ <= kMaxWarnings)
        log_warn("store: refused rank {} at {}: {}", client.rank(), client.address(), why);
      return;
    }
    client.member = true;
    known_.insert(client.rank());
    members_[client.rank()] = &client;
    note_members();
    client.send({FrameType::kWelcome, "", "", 0, 0});
    if (cause_.verdict()) send_verdict(client);
  }

  // The end of a rank that has joined is known by its connection.
  void take_absence(StoreConnection& client, const std::string& reason) {
    client.leaving = true;
    if (client.rank() >= world_size_ || !known_.insert(client.rank()).second) return;
    cause_.report(client.rank(), client.rank(), reason);
    follow_cause();
  }

  void handle(StoreConnection& client, const Frame& frame) {
    switch (frame.type) {
      case FrameType::kSet:
        return table_.set(frame.key, frame.value);
      case FrameType::kGet:
        return table_.get(client.rank(), frame.request, frame.key);
      case FrameType::kGather:
        return table_.gather(client.rank(), frame.request, frame.key, frame.value);
      case FrameType::kMissing: {
        const std::vector<int> missing = table_.missing(frame.key);
        const std::string text =
            fmt::format("{}{}", joined(missing, " "), missing.empty() ? "" : doubt(missing[0]));
        return client.send({FrameType::kAnswer, "", text, frame.request, 0});
      }
      case FrameType::kAbort:
        cause_.report(client.rank(), frame.rank, frame.value);
        return follow_cause();
      case FrameType::kInquire:
        return inquire(client.rank(), {frame.rank, frame.value});
      case FrameType::kState:
        if (survey_ && frame.request == survey_->round)
          survey_->states[client.rank()] = frame.value;
        if (inquiry_) inquiry_->take(client.rank(), frame.request, frame.value);
        return;
      case FrameType::kGoodbye:
        return depart(client);
      default:
        fail(ErrorKind::kPeer, "serve rank {}: it sent a message that only the server may send",
             client.rank());
    }
  }

  std::string doubt(int rank) {
    const auto member = members_.find(rank);
    return member == members_.end() ? "" : question_about(member->second->fd());
  }

  void forget_member(int rank) {
    members_.erase(rank);
    note_members();
  }

  // For other threads.
  void note_members() {
    const std::lock_guard lock(mutex_);
    present_.clear();
    for (const auto& [rank, _] : members_) present_.push_back(rank);
  }

  void depart(StoreConnection& client) {
    forget_member(client.rank());
    departed_.insert(client.rank());
    if (inquiry_) inquiry_->forget(client.rank());
    client.leaving = true;
    const std::lock_guard lock(mutex_);
    ++left_;
    changed_.notify_all();
  }

  void lose(StoreConnection& client, const std::string& why = "") {
    if (client.gone) return;
    client.gone = true;
    if (!client.member || client.leaving) return;
    forget_member(client.rank());
    const std::string last = describe_lost(client.rank());
    cause_.lost(client.rank(),
                fmt::format("its connection ended without a goodbye{}{}; was it killed?{}{}",
                            why.empty() ? "" : ": ", why, last.empty() ? "" : " ", last));
    follow_cause();
  }

  // What comes from the client's rank cannot be believed any more. It may still hear why.
  void expel(StoreConnection& client, const std::string& why) {
    if (client.leaving) return lose(client);
    cause_.lost(client.rank(), why);
    follow_cause();
    if (!client.member && cause_.verdict()) send_verdict(client);
    if (client.member) forget_member(client.rank());
    client.leaving = true;
  }

  std::string describe_lost(int rank) {
    const std::lock_guard lock(diagnostics_mutex_);
    return diagnostics_.describe_lost ? diagnostics_.describe_lost(rank) : "";
  }

  // Who asks while one is under way, or after the verdict, is told with the others.
  void inquire(int rank, FailureVerdict suspicion) {
    if (inquiry_ || cause_.verdict()) return;
    inquiry_.emplace(rank, std::move(suspicion));
    ask_all();
  }

  void ask_all() {
    const uint32_t round = inquiry_->start_round();
    for (auto& [_, member] : members_) member->send({FrameType::kInquire, "", "", round, 0});
  }

  void advance_inquiry() {
    if (inquiry_->paused()) return inquiry_->pause_is_over() ? ask_all() : void();
    if (!inquiry_->complete(members_.size())) return;
    const Finding finding = diagnose();
    if (!finding.settled && !inquiry_->is_last()) return inquiry_->pause();
    const FailureVerdict& verdict = finding.verdict;
    cause_.report(verdict.rank, verdict.rank, verdict.reason);
    follow_cause();
  }

  // Starts the survey that another thread waits for, or gives it the answers.
  void advance_survey() {
    const std::lock_guard lock(mutex_);
    if (!survey_patience_) return survey_.reset();
    if (!survey_) {
      survey_ = Survey{++surveys_, Deadline::after(*survey_patience_), {}};
      for (auto& [_, member] : members_)
        member->send({FrameType::kInquire, "", "", survey_->round, 0});
    }
    if (survey_->states.size() < members_.size() && !survey_->end.expired()) return;
    surveyed_ = answers_of(*survey_);
    survey_.reset();
    survey_patience_.reset();
    changed_.notify_all();
  }

  Finding diagnose() {
    const std::vector<RankAnswer> answers = inquiry_->answers(world_size_, departed_);
    const std::lock_guard lock(diagnostics_mutex_);
    std::optional<Finding> finding;
    if (diagnostics_.diagnose) finding = diagnostics_.diagnose(answers, inquiry_->asked_by());
    if (finding) return *finding;
    // During the rendezvous no rank is in an operation that tells for whom it waits.
    for (const auto& [rank, _] : members_) {
      if (answers[size_t(rank)].kind != RankAnswer::Kind::kSilent) continue;
      return {{rank, fmt::format("it does not respond, its process may be stopped, or its host out "
                                 "of reach; rank {}: {}",
                                 inquiry_->asked_by(), inquiry_->suspicion().reason)}};
    }
    return {inquiry_->suspicion()};
  }

  // To be called after new evidence.
  void follow_cause() {
    if (cause_.pending() && !grace_) grace_ = Deadline::after(kAccusationGrace);
    if (!cause_.verdict() || pushed_) return;
    pushed_ = true;
    grace_.reset();
    inquiry_.reset();
    for (auto& [_, member] : members_) send_verdict(*member);
    const std::lock_guard lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }

  void settle_accusations() {
    grace_.reset();
    cause_.decide();
    follow_cause();
  }

  void send_verdict(StoreConnection& client) {
    const FailureVerdict& verdict = *cause_.verdict();
    client.send({FrameType::kVerdict, "", verdict.reason, 0, verdict.rank});
  }

  // Their numbers are apart from those of an inquiry's rounds, which are few.
  struct Survey {
    uint32_t round = 0;
    Deadline end;
    std::map<int, std::string> states;  // by rank
  };

  [[nodiscard]] std::vector<RankAnswer> answers_of(const Survey& survey) const {
    std::vector<RankAnswer> answers(size_t(world_size_), {RankAnswer::Kind::kAbsent, ""});
    for (const auto& [rank, _] : members_) answers[size_t(rank)].kind = RankAnswer::Kind::kSilent;
    for (const auto& [rank, state] : survey.states)
      answers[size_t(rank)] = {RankAnswer::Kind::kState, state};
    for (const int rank : departed_) answers[size_t(rank)] = {RankAnswer::Kind::kLeft, ""};
    return answers;
  }

  StoreClients clients_;
  const int world_size_;
  std::map<int, StoreConnection*> members_;  // joined and not departed
  std::set<int> departed_;                   // said goodbye
  std::set<int> known_;                      // ranks that have joined, or ended before
  StoreTable table_;
  BlameTracker cause_;
  bool pushed_ = false;            // the verdict has been sent
  std::optional<Deadline> grace_;  // of an accusation
  std::optional<Inquiry> inquiry_;
  std::optional<Survey> survey_;
  uint32_t surveys_ = uint32_t{1} << 31;
  int refusals_ = 0;

  std::mutex diagnostics_mutex_;
  DiagnosisHooks diagnostics_;  // guarded by it

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> present_;  // the ranks of members_; guarded by mutex_
  int left_ = 0;              // guarded by mutex_
  bool failed_ = false;       // guarded by mutex_
  // Guarded by mutex_: what another thread waits for, and gets.
  std::optional<Deadline::Duration> survey_patience_;
  std::vector<RankAnswer> surveyed_;
  std::jthread thread_;  // last: it uses everything above
};

StoreServer::StoreServer(Fd listener, int world_size, const Secret& secret,
                         Deadline::Duration silence)
    : loop_(std::make_unique<Loop>(std::move(listener), world_size, secret, silence)) {}

StoreServer::~StoreServer() = default;

int StoreServer::port() const { return loop_->port(); }
bool StoreServer::has_failed() const { return loop_->has_failed(); }
std::vector<int> StoreServer::members() const { return loop_->members(); }
void StoreServer::set_diagnostics(DiagnosisHooks diagnostics) {
  loop_->set_diagnostics(std::move(diagnostics));
}
std::vector<RankAnswer> StoreServer::survey(Deadline::Duration patience) {
  return loop_->survey(patience);
}
bool StoreServer::wait_goodbyes(Deadline deadline) {
  return loop_->wait_goodbyes(std::nullopt, deadline);
}
bool StoreServer::wait_goodbyes(int ranks, Deadline deadline) {
  return loop_->wait_goodbyes(ranks, deadline);
}

}  // namespace gxp
