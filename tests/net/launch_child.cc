// A program that launches itself, as gxp does. Without GXP_RANK it is the launcher:
//   launch_child launch NPROC HOST_COUNT TERMINATE_MS BEHAVIOUR...   ends with launch()'s result
// With it, a rank that behaves as told (see kBehaviours). Apart from that
//   launch_child join PORT RANK WORLD_SIZE SECRET FD   joins a store, writes a byte to FD, and
//   waits
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "lib/base/error.h"
#include "lib/net/launch/job_progress.h"
#include "lib/net/launch/launcher.h"
#include "lib/net/launch/signals.h"
#include "lib/net/store/rendezvous.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

using Arguments = std::vector<std::string>;

Rendezvous join() {
  const Environment environment = process_environment();
  return join_job(identity_from(environment), environment, Deadline::after(20s));
}

// Says who it is and what it gathers.
int rendezvous(const RankIdentity& identity, const Arguments&) {
  Rendezvous job = join();
  const auto all = job.store->gather("ranks", std::to_string(identity.rank), Deadline::after(20s));
  std::string text =
      fmt::format("{}/{} local {}/{} gathered {}\n", identity.rank, identity.world_size,
                  identity.local_rank, identity.local_world_size, fmt::join(all, ","));
  std::cout << text << "part" << std::flush << " two\n";
  std::cerr << "gxp[rank " << identity.rank << "] log line\n"
            << "bare line\n"
            << std::flush;
  job.close(Deadline::after(20s));
  return 0;
}

// RANK fails in the way HOW (a signal's number, or "exit CODE") once the others wait for a verdict.
int fail_one(const RankIdentity& identity, const Arguments& arguments) {
  Rendezvous job = join();
  const int victim = std::stoi(arguments.at(0));
  if (identity.rank == victim) {
    for (int rank = 0; rank < identity.world_size; ++rank) {
      if (rank != victim) job.store->get(fmt::format("rank {}", rank), Deadline::after(20s));
    }
    if (arguments.at(1) == "exit") _exit(std::stoi(arguments.at(2)));
    std::raise(std::stoi(arguments.at(1)));
  }
  job.store->set(fmt::format("rank {}", identity.rank), "waits");
  const auto verdict = job.store->wait_verdict(Deadline::after(20s));
  std::cerr << "verdict " << (verdict ? verdict->rank : -1) << "\n";
  return 5;
}

// Rank 1 fails in the way HOW (a signal's number, or "exit") and does not join the others.
int fail_early(const RankIdentity& identity, const Arguments& arguments) {
  if (identity.rank == 1) {
    if (arguments.at(0) != "exit") std::raise(std::stoi(arguments.at(0)));
    std::cerr << "gxp: error: no such file\n";
    return 4;
  }
  Rendezvous job = join();
  const auto verdict = job.store->wait_verdict(Deadline::after(20s));
  if (verdict) std::cerr << "verdict " << verdict->rank << ": " << verdict->reason << "\n";
  return 5;
}

// Rank 1 exits with 4; rank 0 ignores SIGTERM and never ends.
int stubborn(const RankIdentity& identity, const Arguments&) {
  std::signal(SIGTERM, SIG_IGN);
  Rendezvous job = join();
  job.store->barrier("all here", Deadline::after(20s));
  if (identity.rank == 1) _exit(4);
  for (;;) pause();
}

// Says "ready", takes signals, and ends after the one numbered LAST.
int await_signals(const RankIdentity& identity, const Arguments& arguments) {
  SignalFd signals{SIGINT, SIGTERM, SIGUSR1};
  std::cout << "ready " << identity.rank << " " << getpid() << std::endl;
  for (;;) {
    wait_ready(signals.fd(), 1, Deadline::after(20s));
    for (const int number : signals.take()) {
      std::cout << "got " << signal_name(number) << std::endl;
      if (number == std::stoi(arguments.at(0))) return 0;
    }
  }
}

// Writes lines without end, whatever the signal.
int flood(const RankIdentity&, const Arguments&) {
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, SIG_IGN);
  for (;;) std::cout << "line" << std::endl;
}

// A process that stands for a debugger traces the rank and does not wait for it: the rank's end is then
// the debugger's to see, not its parent's, until the debugger ends as well.
int be_traced(const RankIdentity&, const Arguments&) {
  const pid_t rank = getpid();
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  int traced[2];
  if (pipe(traced) != 0) return 70;
  if (fork() == 0) {
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    alarm(20);
    const bool done = ptrace(PTRACE_SEIZE, rank, nullptr, nullptr) == 0;
    if (write(traced[1], done ? "y" : "n", 1) != 1 || !done) _exit(1);
    for (;;) pause();
  }
  char done = 'n';
  if (read(traced[0], &done, 1) != 1 || done == 'n') return 0;
  std::cout << "traced" << std::endl;
  for (;;) pause();
}

int stop_itself(const RankIdentity&, const Arguments&) { return std::raise(SIGSTOP); }

// Says on how many CPUs it may run, and the first of them.
int tell_cpus(const RankIdentity&, const Arguments&) {
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof cpus, &cpus);
  int first = 0;
  while (!CPU_ISSET(first, &cpus)) ++first;
  std::cout << CPU_COUNT(&cpus) << " from " << first << std::endl;
  return 0;
}

// Rank 1 ends in each attempt as the next of the arguments after MOST and FILE says, "STEP:SIGNAL",
// "STEP:exit CODE" or "0:well"; the ranks know the attempt by the lines of FILE. Nothing is saved.
int fail_in_turn(const RankIdentity& identity, const Arguments& arguments) {
  std::ifstream file(arguments.at(1));
  const auto attempt = size_t(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
  Rendezvous job = join();
  job.store->barrier("have read", Deadline::after(20s));
  const std::string& plan = arguments.at(2 + attempt);
  const std::string how = plan.substr(plan.find(':') + 1);
  if (identity.rank == 0) {
    std::ofstream(arguments.at(1), std::ios::app) << identity.job << std::endl;
    if (auto progress = JobProgress::inherited(process_environment()))
      progress->set_step(std::stoi(plan));
    std::cout << "attempt " << attempt << std::endl;
  }
  job.store->barrier("in the step", Deadline::after(20s));
  if (identity.rank == 1 && how.starts_with("exit")) _exit(std::stoi(how.substr(5)));
  if (identity.rank == 1 && how != "well") {
    std::signal(std::stoi(how), SIG_DFL);  // where a sanitizer catches it, and exits
    std::raise(std::stoi(how));
  }
  if (how != "well") return job.store->wait_verdict(Deadline::after(20s)) ? 5 : 70;
  job.close(Deadline::after(20s));
  return 0;
}

struct Behaviour {
  std::string_view name;
  int (*run)(const RankIdentity&, const Arguments&);
};
constexpr Behaviour kBehaviours[] = {
    {"rendezvous", rendezvous},    {"fail_one", fail_one},           {"fail_early", fail_early},
    {"stubborn", stubborn},        {"await_signals", await_signals}, {"flood", flood},
    {"stop_itself", stop_itself},  {"tell_cpus", tell_cpus},         {"be_traced", be_traced},
    {"fail_in_turn", fail_in_turn}};

int behave(const Arguments& arguments) {
  const RankIdentity identity = identity_from(process_environment());
  for (const Behaviour& behaviour : kBehaviours) {
    if (behaviour.name == arguments.at(1))
      return behaviour.run(identity, {arguments.begin() + 2, arguments.end()});
  }
  return 70;
}

int launch_ranks(const Arguments& arguments) {
  LaunchOptions options;
  options.nproc = std::stoi(arguments.at(2));
  options.host_count = std::stoi(arguments.at(3));
  options.terminate_after = std::chrono::milliseconds(std::stoi(arguments.at(4)));
  options.kill_after = 2 * options.terminate_after;
  options.stopped_after = options.leave_after = options.terminate_after;
  if (arguments.at(5) == "await_signals") options.same_signal_within = options.terminate_after;
  options.argv = {arguments.at(0)};
  options.argv.insert(options.argv.end(), arguments.begin() + 5, arguments.end());
  if (arguments.at(5) == "fail_in_turn") options.max_restarts = std::stoi(arguments.at(6));
  Environment environment = process_environment();
  if (arguments.at(5) == "stop_itself") {  // on the second of two hosts; no rank joins the first
    options.host_index = 1;
    options.master = {"127.0.0.1", 1};
    environment[kSecretVariable] = Secret::generate().hex();
  }
  return launch(options, environment);
}

int join_and_wait(const Arguments& arguments) {
  const Store store({"127.0.0.1", std::stoi(arguments.at(2))}, std::stoi(arguments.at(3)),
                    std::stoi(arguments.at(4)), Secret::from_hex(arguments.at(5), "the arguments"),
                    Deadline::after(20s));
  if (write(std::stoi(arguments.at(6)), "x", 1) != 1) return 1;
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments(argv, argv + argc);
  try {
    if (arguments.at(1) == "launch") return launch_ranks(arguments);
    return arguments.at(1) == "join" ? join_and_wait(arguments) : behave(arguments);
  } catch (const Error& error) {
    std::cerr << error.what() << std::endl;
    return exit_code(error.kind());
  }
}
