#include "lib/job/status/status_server.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/thread.h"

namespace gxp {
namespace {

constexpr std::chrono::milliseconds kAskFor{80};  // of the 200 ms within which a status comes
constexpr int kMostIntroductions = 20;

}  // namespace

StatusServer::StatusServer(std::string directory, JobSources sources)
    : directory_(std::move(directory)),
      sources_(sources),
      wake_(int(check_sys(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "make an eventfd"))) {
  thread_ = start_thread("gxp-status", [this](const std::stop_token& stop) { run(stop); });
}

StatusServer::~StatusServer() {
  thread_.request_stop();
  ::eventfd_write(wake_.get(), 1);
}

void StatusServer::own_directory() noexcept {
  owns_directory_ = true;
  ::eventfd_write(wake_.get(), 1);
}

void StatusServer::run(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "gxp-status");
  set_log_rank(sources_.own.rank());
  try {
    watch(stop);
  } catch (const std::exception& error) {
    log_warn("status: {}; this run is not watched any more", error.what());
  }
}

void StatusServer::take_socket(std::optional<StatusSocket>& socket, bool owns) {
  if (directory_.empty()) return;
  try {
    if (!socket) socket.emplace(directory_);
    if (owns) socket->take_over();
  } catch (const std::exception& error) {
    socket.reset();
    // A run that cannot have the directory says so itself.
    if (owns) log_warn("status: {}; gxp train --status cannot ask this run", error.what());
  }
}

void StatusServer::watch(const std::stop_token& stop) {
  std::optional<StatusSocket> socket;
  take_socket(socket, false);
  bool owns = false;
  Deadline look = Deadline::after(StragglerWatch::kLookEvery);
  const auto answer = [this](Format format) {
    const Report report = describe_job(sources_.facts, ask());
    return format == Format::kText  ? to_text(report)
           : format == Format::kCsv ? to_csv(report)
                                    : to_json(report);
  };
  while (!stop.stop_requested()) {
    if (!owns && owns_directory_) {
      owns = true;
      take_socket(socket, owns);
    }
    // -1 is ignored.
    std::array<pollfd, 2> entries = {
        {{wake_.get(), POLLIN, 0}, {socket ? socket->fd() : -1, POLLIN, 0}}};
    ::poll(entries.data(), entries.size(), look.remaining_ms());
    eventfd_t woken = 0;
    if (entries[0].revents != 0) ::eventfd_read(wake_.get(), &woken);
    if (entries[1].revents != 0) socket->serve(answer);
    if (!look.expired()) continue;
    look_for_stragglers();
    look = Deadline::after(StragglerWatch::kLookEvery);
  }
}

FlightRecord StatusServer::own_record() const {
  return parse_flight_record(sources_.own.image(), "of this rank");
}

JobAnswers StatusServer::ask() {
  JobAnswers answers{read_answers(sources_.survey.ask(kAskFor)), {}};
  // Before the ranks meet, and where another launcher brings them together, this one is known.
  const FlightRecord own = own_record();
  answers.ranks.resize(size_t(own.world_size), {.kind = RankAnswer::Kind::kAbsent, .record = {}});
  answers.ranks[size_t(own.rank)] = {RankAnswer::Kind::kState, own};
  for (size_t rank = 0; rank < answers.ranks.size(); ++rank)
    if (const auto& record = answers.ranks[rank].record)
      known_[int(rank)] = {record->host_name, record->process};
  answers.known = known_;
  return answers;
}

void StatusServer::look_for_stragglers() {
  const FlightRecord own = own_record();
  // So that a rank that hangs later can be named.
  if (sources_.facts.steps_made > 0 && known_.size() < size_t(own.world_size) &&
      introductions_ < kMostIntroductions) {
    ++introductions_;
    (void)ask();
  }
  if (const auto text = stragglers_.look(own, sources_.facts, [this] { return ask(); }))
    log_warn("straggler: {}", *text);
}

}  // namespace gxp
