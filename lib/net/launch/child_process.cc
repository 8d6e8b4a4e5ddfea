#include "lib/net/launch/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "lib/base/error.h"
#include "lib/base/running_time.h"
#include "lib/base/thread.h"

namespace gxp {
namespace {

struct Pipe {
  Fd read;
  Fd write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  check_sys(::pipe2(ends.data(), O_CLOEXEC), "make a pipe for a rank's output");
  return {Fd(ends[0]), Fd(ends[1])};
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

struct Start {
  const char* path;
  char** argv;
  char** environment;
  int in;
  int out;
  int err;
  std::span<const int> inherited;
  pid_t parent;
  const sigset_t* mask;
  const cpu_set_t* cpus;  // null: as they are
};

// Runs in the child, between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(const Start& start) {
  // The parent may have died before prctl() took effect; then nobody would end this process.
  const bool orphan = ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != start.parent;
  if (orphan) ::_exit(127);
  ::setpgid(0, 0);
  const bool wired = ::dup2(start.in, STDIN_FILENO) >= 0 && ::dup2(start.out, STDOUT_FILENO) >= 0 &&
                     ::dup2(start.err, STDERR_FILENO) >= 0;
  for (const int fd : start.inherited) ::fcntl(fd, F_SETFD, 0);
  ::sigprocmask(SIG_SETMASK, start.mask, nullptr);
  if (start.cpus != nullptr) ::sched_setaffinity(0, sizeof *start.cpus, start.cpus);
  if (wired) ::execve(start.path, start.argv, start.environment);
  constexpr std::string_view kText = "gxp error launcher: cannot execute the program of a rank\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(127);
}

}  // namespace

std::optional<std::string> LineSplitter::next() {
  const size_t newline = pending_.find('\n', std::max(start_, searched_));
  size_t end = newline + 1;
  if (newline == std::string::npos) {
    searched_ = pending_.size();
    if (pending_.size() - start_ < kMaxLineBytes) {
      pending_.erase(0, start_);
      searched_ -= start_;
      start_ = 0;
      return std::nullopt;
    }
    end = start_ + kMaxLineBytes;
  }
  std::string line = pending_.substr(start_, end - start_);
  start_ = end;
  return line;
}

std::string LineSplitter::rest() {
  std::string rest = pending_.substr(start_);
  *this = LineSplitter();
  return rest;
}

ChildProcess::ChildProcess(int rank, const Program& program) : rank_(rank) {
  sigemptyset(&sent_);
  Pipe out_pipe = make_pipe();
  Pipe err_pipe = make_pipe();
  const Fd null(int(check_sys(::open("/dev/null", O_RDONLY | O_CLOEXEC), "open /dev/null")));
  std::vector<std::string> argv = program.argv;
  std::vector<std::string> variables;
  for (const auto& [name, value] : program.environment) variables.push_back(name + "=" + value);
  const std::vector<char*> argv_pointers = pointers(argv);
  const std::vector<char*> variable_pointers = pointers(variables);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : program.cpus) CPU_SET(cpu, &cpus);
  const Start start{program.path.c_str(),
                    const_cast<char**>(argv_pointers.data()),
                    const_cast<char**>(variable_pointers.data()),
                    null.get(),
                    out_pipe.write.get(),
                    err_pipe.write.get(),
                    program.inherited,
                    ::getpid(),
                    &program.mask,
                    program.cpus.empty() ? nullptr : &cpus};
  pid_ = ::fork();
  if (const int error = errno; pid_ < 0) fail_to_start(fmt::format("rank {}", rank), error);
  if (pid_ == 0) become(start);
  out = {std::move(out_pipe.read), STDOUT_FILENO, {}};
  err = {std::move(err_pipe.read), STDERR_FILENO, {}};
  for (const RankOutput* stream : {&out, &err}) ::fcntl(stream->pipe.get(), F_SETFL, O_NONBLOCK);
}

ChildProcess::~ChildProcess() {
  if (!running()) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {  // ends: SIGKILL was sent
  }
}

std::optional<int> ChildProcess::reap() {
  int status = 0;
  while (running() && ::waitpid(pid_, &status, WNOHANG | WUNTRACED | WCONTINUED) == pid_) {
    stopped_.reset();
    if (WIFSTOPPED(status)) {
      stopped_ = {WSTOPSIG(status), running_time()};
    } else if (!WIFCONTINUED(status)) {
      pid_ = -1;
      return status;
    }
  }
  return std::nullopt;
}

void ChildProcess::signal(int number) {
  if (!running()) return;
  sigaddset(&sent_, number);
  if (number == SIGKILL && !killed_at_) killed_at_ = running_time();
  ::kill(pid_, number);
}

bool ChildProcess::withstands_kill(std::chrono::nanoseconds time) const {
  return running() && killed_at_ && running_time() - *killed_at_ >= time;
}

}  // namespace gxp
