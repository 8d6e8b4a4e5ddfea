#include "lib/net/launch/launcher.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <sstream>

#include "lib/base/fd.h"
#include "lib/net/launch/child_process.h"
#include "lib/net/launch/job_outcome.h"
#include "tests/catch.h"
#include "tests/net/launched.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

TEST_CASE("a rank that the OOM killer ended is reported as one", "[net]") {
  const ChildProcess::Program program{"/bin/sh", {"sh", "-c", "kill -9 $$"}, {}};
  ChildProcess rank(3, program);
  std::optional<int> status;
  while (!status) status = rank.reap();
  JobOutcome outcome;
  outcome.add(rank, *status);
  CHECK(outcome.describe(0) == "rank 3 was killed by signal 9 (SIGKILL)");
  CHECK(contains(outcome.describe(1), "SIGKILL), as the OOM killer does"));
}

TEST_CASE("ranks that are a multiple of the CPUs share each with as many others") {
  cpu_set_t cpus;
  REQUIRE(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
  const int count = CPU_COUNT(&cpus);
  Launch launch({std::to_string(2 * count), "1", "2000", "tell_cpus"});
  CHECK(launch.end() == 0);
  const std::vector<std::string> lines = sorted_lines(launch.output);
  REQUIRE(lines.size() == size_t(2 * count));
  std::map<std::string, int> ranks;  // by what they say
  for (const std::string& line : lines)
    ++ranks[line.substr(line.starts_with("[rank") ? line.find("] ") + 2 : 0)];
  CHECK(ranks.size() == size_t(count));
  for (const auto& [text, number] : ranks) {
    CHECK(number == 2);
    CHECK(text.starts_with("1 from "));
  }
}

TEST_CASE("launched ranks meet through an inherited port and a secret of their own", "[net]") {
  Launch launch({"3", "1", "2000", "rendezvous"});
  CHECK(launch.end() == 0);
  CAPTURE(launch.errors);
  CHECK(sorted_lines(launch.output) ==
        std::vector<std::string>{"0/3 local 0/3 gathered 0,1,2",
                                 "[rank 1] 1/3 local 1/3 gathered 0,1,2", "[rank 1] part two",
                                 "[rank 2] 2/3 local 2/3 gathered 0,1,2", "[rank 2] part two",
                                 "part two"});
  CHECK(sorted_lines(launch.errors) ==
        std::vector<std::string>{"[rank 0] bare line", "[rank 1] bare line", "[rank 2] bare line",
                                 "gxp[rank 0] log line", "gxp[rank 1] log line",
                                 "gxp[rank 2] log line"});
}

TEST_CASE("the rank that fails is named and decides the exit code", "[net]") {
  struct Row {
    std::vector<std::string> how;
    int code;
    std::string message;
  };
  const Row row = GENERATE(Row{{"2", "9"}, 5, "rank 2 was killed by signal 9 (SIGKILL)"},
                           Row{{"0", "9"}, 5, "rank 0 was killed by signal 9 (SIGKILL)"},
                           Row{{"1", "exit", "4"}, 4, "rank 1 exited with code 4"});
  Launch launch(Arguments{"4", "1", "2000", "fail_one"} + row.how);
  CHECK(launch.end() == row.code);
  CAPTURE(launch.errors);
  CHECK(contains(launch.errors, "gxp error " + row.message));
  CHECK(contains(launch.errors, "verdict " + row.how[0]));
  CHECK_FALSE(contains(launch.errors, "sending SIGTERM"));
}

TEST_CASE("a rank that ends before it joins is named to the others, with the reason", "[net]") {
  const auto [how, reason] = GENERATE(table<std::string, std::string>(
      {{"9", "it was killed by signal 9 (SIGKILL)"}, {"exit", "no such file"}}));
  Launch launch({"3", "1", "20000", "fail_early", how});
  CHECK(launch.end() == (how == "exit" ? 4 : 5));
  CAPTURE(launch.errors);
  for (const int rank : {0, 2})
    CHECK(contains(launch.errors, fmt::format("[rank {}] verdict 1: {}", rank, reason)));
}

TEST_CASE("a rank that does not end after another's failure is killed", "[net]") {
  Launch launch({"2", "1", "100", "stubborn"});
  CHECK(launch.end() == 4);
  CAPTURE(launch.errors);
  CHECK(contains(launch.errors, "rank 1 exited with code 4"));
  CHECK(contains(launch.errors, "rank 0 has not ended by itself; sending SIGTERM"));
  CHECK(contains(launch.errors, "sending SIGKILL"));
}

TEST_CASE("the first signal goes to all ranks once, a second one kills them", "[net]") {
  const int last = GENERATE(SIGTERM, SIGHUP);
  Launch launch({"2", "1", "2000", "await_signals", std::to_string(last)});
  launch.read_lines(2);
  launch.signal(SIGUSR1);
  launch.read_lines(4);
  launch.signal(SIGTERM);
  launch.read_lines(6);
  if (last == SIGHUP) launch.signal(SIGINT);  // the ranks would wait for ever
  CHECK(launch.end() == (last == SIGTERM ? 0 : 5));
  CHECK(std::count(launch.output.begin(), launch.output.end(), '\n') == 6);
  CHECK_FALSE(contains(launch.output, "SIGINT"));
}

TEST_CASE("the same signal twice at once is one request", "[net]") {
  Launch launch({"2", "1", "60000", "await_signals", std::to_string(SIGUSR1)});
  launch.read_lines(2);
  launch.signal(SIGTERM);
  launch.read_lines(4);
  launch.signal(SIGTERM);
  launch.signal(SIGUSR1);
  CHECK(launch.end() == 0);
}

TEST_CASE("a launcher whose output nobody reads leaves at the second signal", "[net]") {
  Launch launch({"2", "1", "2000", "flood"});
  launch.read_lines(1);
  launch.signal(SIGTERM);
  launch.signal(SIGINT);
  CHECK(launch.end_unread() == 5);
}

TEST_CASE("a stopped rank that is alone on its host does not keep the launcher", "[net]") {
  Launch launch({"1", "2", "50", "stop_itself"});
  REQUIRE(launch.end_unread() == 5);
  launch.end();
  CHECK(contains(launch.errors, "rank 1 was stopped (SIGSTOP) and not continued within 0.05 s"));
}

TEST_CASE("a rank that even SIGKILL does not end keeps no launcher", "[net]") {
  Launch launch({"1", "1", "100", "be_traced"});
  launch.read_lines(1);
  if (launch.output.empty()) {
    CHECK(launch.end() == 0);
    WARN("skipped: no process may trace another here");
    return;
  }
  launch.signal(SIGTERM);  // ends it, unseen
  launch.signal(SIGINT);   // SIGKILL
  REQUIRE(launch.end_unread() == 5);
  launch.end();
  CHECK(contains(launch.errors, "rank 0, process "));
  CHECK(contains(launch.errors, "has not ended 0.1 s after SIGKILL; leaving it"));
}

TEST_CASE("no rank outlives a launcher that is killed", "[net]") {
  Launch launch({"2", "1", "2000", "await_signals", "15"});
  launch.read_lines(2);
  const pid_t rank = std::stoi(launch.output.substr(launch.output.find("ready 1 ") + 8));
  CHECK(kill(rank, 0) == 0);
  launch.signal(SIGKILL);
  CHECK(launch.end() == 128 + SIGKILL);
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  // An orphan that has died stays a zombie, without a command line, until init takes it.
  const auto gone = [rank] {
    const std::string path = "/proc/" + std::to_string(rank) + "/cmdline";
    std::array<char, 1> byte;
    const Fd file(open(path.c_str(), O_RDONLY));
    return !file.valid() || read(file.get(), byte.data(), 1) <= 0;
  };
  while (!gone() && std::chrono::steady_clock::now() < give_up) usleep(1000);
  CHECK(gone());
}

TEST_CASE("several hosts without a master are told what is missing", "[net]") {
  Launch launch({"1", "2", "2000", "rendezvous"});
  CHECK(launch.end() == 2);
  CHECK(contains(launch.errors, "--master"));
}
