#include "lib/net/store/store.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <sstream>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/thread.h"
#include "lib/net/identity/identity.h"
#include "lib/net/socket/authenticate.h"
#include "lib/net/store/rank_list.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

constexpr auto kVerdictPatience = 2s;      // for the cause to arrive after its consequence
constexpr auto kAnswerPatience = 1500ms;   // of the server, which waits for nobody, on a busy host
constexpr auto kInquiryPatience = 1500ms;  // three times what the server takes at most
constexpr std::string_view kSilentStore =
    "is its process stopped, has it left the job, or are packets lost, as those above the MTU of a "
    "link may be?";
constexpr size_t kReadBytes = size_t{64} << 10;
// A gather's answer holds every rank's value, and the server has proved who it is.
constexpr size_t kMaxAnswerBytes = std::numeric_limits<uint32_t>::max();

std::string to_text(const FailureVerdict& verdict) {
  return fmt::format("rank {}: {}", verdict.rank, verdict.reason);
}

void check_size(std::string_view what, std::string_view key, std::string_view value) {
  if (key.size() > kMaxKeyBytes || value.size() > kMaxValueBytes)
    fail(ErrorKind::kInternal, "{} of the store: key of {} B, value of {} B; the limits are {}, {}",
         what, key.size(), value.size(), kMaxKeyBytes, kMaxValueBytes);
}

}  // namespace

Store::Store(const Endpoint& server, int rank, int world_size, const Secret& secret,
             Deadline deadline, Deadline::Duration silence)
    : Store(server, rank, world_size) {
  const int server_rank = authenticate(secret, deadline, silence);
  if (server_rank != 0)
    fail(ErrorKind::kPeer, "rendezvous at {}: rank {} answered instead of rank 0",
         to_string(server_), server_rank);
  join(deadline);
  watcher_ = start_thread("gxp-watcher", [this] { watch(); });
}

Store::~Store() { stop(); }

void Store::report_absence(const Endpoint& server, int rank, int world_size, const Secret& secret,
                           std::string_view reason, Deadline deadline) {
  Store store(server, rank, world_size);
  store.authenticate(secret, deadline, kUsualSilence);
  const std::string text(reason.substr(0, kMaxValueBytes));
  store.send({FrameType::kAbsent, "", text, 0, 0}, deadline);
  // Until the server has taken it in, and closes.
  while (wait_ready(store.socket_.get(), POLLIN, deadline) && store.receive()) {
  }
}

std::string Store::server_name() const { return fmt::format("rank 0 at {}", to_string(server_)); }

Fd Store::connect(Deadline deadline) const {
  try {
    return connect_tcp(server_, "rank 0", deadline);
  } catch (const Error& error) {
    fail(error.kind(), "{}; is its process running?{}", error.what(),
         leads_to_itself(server_.host)
             ? fmt::format(
                   " {} is this host itself; if rank 0 runs on another one, give its address by "
                   "--master HOST:PORT or MASTER_ADDR",
                   server_.host)
             : "");
  }
}

int Store::authenticate(const Secret& secret, Deadline deadline, Deadline::Duration silence) {
  const auto name = [this](const Error& error) {
    return fmt::format("join {}: {}", server_name(), error.what());
  };
  auto [socket, server] = connect_and_authenticate(
      [&] {
        Fd connected = connect(deadline);
        detect_silence(connected.get(), silence);
        return connected;
      },
      [&](int connected) {
        try {
          return authenticate_client(connected, secret, "store", rank_, deadline);
        } catch (const ConnectionClosed& dropped) {
          throw ConnectionClosed(dropped.kind(), name(dropped));
        } catch (const Error& error) {
          throw Error(error.kind(), name(error));
        }
      },
      deadline);
  socket_ = std::move(socket);
  sealer_.emplace(server.keys.cipher, server.keys.sending, Protection::kEncrypt);
  reader_.emplace(server.keys.cipher, server.keys.receiving,
                  fmt::format("what {} sent to rank {}", server_name(), rank_), kMaxAnswerBytes);
  return server.rank;
}

// Takes in what has arrived; false at the end of the connection.
bool Store::receive() {
  std::array<char, kReadBytes> chunk;
  const ssize_t count = ::recv(socket_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (count > 0) reader_->add({chunk.data(), size_t(count)});
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

// The next frame. The watcher does not run yet.
Frame Store::read_frame(Deadline deadline) {
  for (;;) {
    if (auto frame = reader_->next()) return *frame;
    if (!wait_ready(socket_.get(), POLLIN, deadline))
      fail(ErrorKind::kPeer, "read from {}: no answer within {:g} s", server_name(),
           deadline.seconds());
    if (!receive()) fail(ErrorKind::kPeer, "read from {}: it closed the connection", server_name());
  }
}

Frame Store::ask_to_join(Deadline deadline) {
  try {
    send({FrameType::kJoin, "", "", 0, world_size_}, deadline);
    return read_frame(deadline);
  } catch (const Tampered& tampered) {
    abort(rank_, tampered.what());
    fail(tampered.kind(), "join {}: {}", server_name(), tampered.what());
  } catch (const Error& error) {
    fail(error.kind(),
         "join {}: {}, though it has the same job secret; has the job ended already, or does "
         "someone tamper with the connection?",
         server_name(), error.what());
  }
}

void Store::join(Deadline deadline) {
  const Frame answer = ask_to_join(deadline);
  if (answer.type == FrameType::kRefused)
    fail(ErrorKind::kPeer, "rendezvous at {}: rank {} was refused: {}", to_string(server_), rank_,
         answer.value);
  if (answer.type == FrameType::kVerdict)
    fail(ErrorKind::kPeer, "rendezvous at {}: the job has failed: {}", to_string(server_),
         to_text({answer.rank, answer.value}));
  if (answer.type != FrameType::kWelcome)
    fail(ErrorKind::kPeer, "rendezvous at {}: unexpected answer", to_string(server_));
}

void Store::set(std::string_view key, std::string_view value) {
  check_size("set", key, value);
  check_alive(fmt::format("set '{}'", key));
  send({FrameType::kSet, prefix_ + std::string(key), std::string(value), 0, 0},
       Deadline::after(30s));
}

std::string Store::get(std::string_view key, Deadline deadline, int setter) {
  check_size("get", key, "");
  const std::string act = fmt::format("get '{}'", key);
  check_alive(act);
  auto value = request({FrameType::kGet, prefix_ + std::string(key), "", 0, 0}, deadline);
  if (value) return *value;
  ask_missing(act, key);
  if (setter < 0) fail_late(act, "it was not set", deadline);
  // The setter may wait for another rank itself, and is late as well: it tells which.
  if (wait_verdict(Deadline::after(kVerdictPatience))) check_alive(act);
  abort(setter, fmt::format("it did not set '{}' at {} within {:g} s", key, to_string(server_),
                            deadline.seconds()));
  fail_late(act, fmt::format("rank {} did not set it", setter), deadline);
}

std::optional<std::string> Store::find(std::string_view key, Deadline deadline) {
  check_size("find", key, "");
  auto value = request({FrameType::kGet, prefix_ + std::string(key), "", 0, 0}, deadline);
  if (!value) check_alive(fmt::format("find '{}'", key));
  return value;
}

std::string Store::from_rank_0(std::string_view key, const std::function<std::string()>& make,
                               Deadline deadline) {
  if (rank_ != 0) return get(key, deadline, 0);
  std::string text = make();
  set(key, text);
  return text;
}

std::vector<std::string> Store::gather(std::string_view name, std::string_view value,
                                       Deadline deadline) {
  check_size("gather", name, value);
  const std::string act = fmt::format("gather '{}'", name);
  check_alive(act);
  const auto all = request(
      {FrameType::kGather, prefix_ + std::string(name), std::string(value), 0, 0}, deadline);
  if (all) return unpack_strings(*all);
  auto [missing, question] = ask_missing(act, name);
  // Rank 0 has answered: its process is not stopped, and it may wait for one of the others.
  if (missing.size() > 1 && missing[0] == 0)
    std::rotate(missing.begin(), missing.begin() + 1, missing.end());
  const std::string what =
      missing.empty() ? "not all ranks came"
                      : fmt::format("{} of {} did not join", to_text(missing), world_size_);
  if (!missing.empty()) {
    const std::vector<int> others(missing.begin() + 1, missing.end());
    abort(missing[0], fmt::format("it {}did not reach {} within {:g} s ({}){}",
                                  others.empty() ? "" : "and " + to_text(others) + " ",
                                  to_string(server_), deadline.seconds(), act, question));
  }
  fail_late(act, what, deadline);
}

FailureVerdict Store::silent_server() const {
  return {0, fmt::format("its rendezvous store at {} does not answer; {}{}", to_string(server_),
                         kSilentStore, question_about(socket_.get()))};
}

// To be called after waiting in vain for what others were to give as `key`.
Store::Missing Store::ask_missing(std::string_view act, std::string_view key) {
  check_alive(act);
  const auto answer = request({FrameType::kMissing, prefix_ + std::string(key), "", 0, 0},
                              Deadline::after(kAnswerPatience));
  if (!answer) end(silent_server());
  check_alive(act);
  Missing missing;
  std::istringstream numbers(*answer);
  for (int rank = 0; numbers >> rank;) missing.ranks.push_back(rank);
  missing.question = answer->substr(std::min(answer->find(';'), answer->size()));
  return missing;
}

void Store::abort(int culprit, std::string_view reason) noexcept {
  try {
    const std::string text(reason.substr(0, kMaxValueBytes));
    send({FrameType::kAbort, "", text, 0, culprit}, Deadline::after(kVerdictPatience));
  } catch (const std::exception&) {
    // The server is gone: that is the verdict then, and the watcher delivers it.
  }
}

FailureVerdict Store::inquire(int suspect, std::string_view reason) {
  if (const auto known = verdict()) return *known;
  try {
    const std::string text(reason.substr(0, kMaxValueBytes));
    send({FrameType::kInquire, "", text, 0, suspect}, Deadline::after(kVerdictPatience));
  } catch (const Error&) {
    // The watcher finds the reason.
  }
  if (const auto verdict = wait_verdict(Deadline::after(kInquiryPatience))) return *verdict;
  const FailureVerdict silent = silent_server();
  end(silent);
  return verdict().value_or(silent);
}

void Store::on_inquiry(std::function<std::string()> describe) {
  const std::lock_guard lock(inquiry_mutex_);
  describe_ = std::move(describe);
}

void Store::answer_inquiry(uint32_t round) noexcept {
  try {
    const std::lock_guard lock(inquiry_mutex_);
    const std::string state = describe_ ? describe_() : "";
    send({FrameType::kState, "", state, round, 0}, Deadline::after(kVerdictPatience));
  } catch (const std::exception&) {
    // The server is gone: the watcher hears of it next.
  }
}

std::optional<FailureVerdict> Store::verdict() const {
  const std::lock_guard lock(mutex_);
  return verdict_;
}

std::optional<FailureVerdict> Store::wait_verdict(Deadline deadline) const {
  std::unique_lock lock(mutex_);
  deadline.wait(changed_, lock, [this] { return verdict_ || ended_; });
  return verdict_;
}

void Store::on_abort(std::function<void(const FailureVerdict&)> alarm) {
  {
    const std::lock_guard lock(mutex_);
    if (!verdict_) {
      alarms_.push_back(std::move(alarm));
      return;
    }
  }
  alarm(*verdict_);  // never changes once it is there
}

void Store::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    closing_ = true;
  }
  try {
    send({FrameType::kGoodbye, "", "", 0, 0}, Deadline::after(kVerdictPatience));
  } catch (const std::exception&) {
    // Nobody is left to hear it.
  }
  stop();
}

// Ends the connection, and with it the watcher.
void Store::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  ::shutdown(socket_.get(), SHUT_RDWR);
  if (watcher_.joinable()) watcher_.join();  // ends: its connection is shut down
}

void Store::send(const Frame& frame, Deadline deadline) {
  const std::lock_guard lock(write_mutex_);
  if (cut_short_) fail(ErrorKind::kPeer, "write to rank 0's rendezvous store: a write has failed");
  std::string bytes;
  append_sealed(bytes, frame, *sealer_);
  cut_short_ = true;
  write_all(socket_.get(), std::as_bytes(std::span(bytes)), "rank 0's rendezvous store", deadline);
  cut_short_ = false;
}

// The answer, or nothing at the deadline or at the end of the connection.
std::optional<std::string> Store::request(Frame frame, Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    frame.request = ++last_request_;
    answers_[frame.request] = std::nullopt;
  }
  try {
    send(frame, deadline);
  } catch (const Error&) {
    // The watcher finds the reason; who calls us asks for the verdict.
    wait_verdict(Deadline::after(kVerdictPatience));
  }
  std::unique_lock lock(mutex_);
  auto& answer = answers_[frame.request];
  deadline.wait(changed_, lock, [&] { return answer || verdict_ || ended_; });
  auto result = std::move(answer);
  answers_.erase(frame.request);
  return result;
}

void Store::check_alive(std::string_view act) {
  const std::lock_guard lock(mutex_);
  if (verdict_) fail(ErrorKind::kPeer, "{}: the job has failed: {}", act, to_text(*verdict_));
  if (ended_) fail(ErrorKind::kPeer, "{}: rank 0 has ended the store", act);
}

void Store::fail_late(std::string_view act, const std::string& what, Deadline deadline) {
  check_alive(act);
  fail(ErrorKind::kPeer, "rendezvous at {}: {} within {:g} s ({})", to_string(server_), what,
       deadline.seconds(), act);
}

void Store::watch() {
  pthread_setname_np(pthread_self(), "gxp-watcher");
  set_log_rank(rank_);
  try {
    watch_until_end();
  } catch (const std::exception& error) {
    // The end of the connection alone would not tell rank 0 why.
    const std::string reason = error.what();
    abort(rank_, reason);
    return end(FailureVerdict{rank_, reason});
  }
  end(FailureVerdict{
      0, fmt::format("the rendezvous store at {} is gone; was it killed?", to_string(server_))});
}

void Store::watch_until_end() {
  do {
    while (auto frame = reader_->next()) handle(std::move(*frame));
    while (!wait_ready(socket_.get(), POLLIN, Deadline::after(1h))) {
    }
  } while (receive());
}

void Store::handle(Frame frame) {
  if (frame.type == FrameType::kVerdict)
    return end(FailureVerdict{frame.rank, std::move(frame.value)});
  if (frame.type == FrameType::kGoodbye) return end(std::nullopt);
  if (frame.type == FrameType::kInquire) return answer_inquiry(frame.request);
  const std::lock_guard lock(mutex_);
  const auto awaited = answers_.find(frame.request);
  if (frame.type != FrameType::kAnswer || awaited == answers_.end()) return;
  awaited->second = std::move(frame.value);
  changed_.notify_all();
}

// The store serves no more, because of `verdict` or in good order. What comes first counts.
void Store::end(std::optional<FailureVerdict> verdict) {
  std::vector<std::function<void(const FailureVerdict&)>> alarms;
  std::function<void(const FailureVerdict&)> witness;
  {
    const std::lock_guard lock(mutex_);
    if (verdict && !ended_ && !closing_) witness.swap(witness_);
  }
  if (witness) witness(*verdict);
  {
    const std::lock_guard lock(mutex_);
    if (!ended_ && !closing_) verdict_ = std::move(verdict);
    ended_ = true;
    if (verdict_) alarms.swap(alarms_);
    changed_.notify_all();
  }
  for (const auto& alarm : alarms) alarm(*verdict_);
}

}  // namespace gxp
