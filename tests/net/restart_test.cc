// Ranks that a launcher starts again.
#include <algorithm>
#include <fstream>

#include "lib/net/launch/host_agreement.h"
#include "lib/net/launch/restart_policy.h"
#include "tests/catch.h"
#include "tests/net/launched.h"
#include "tests/temporary_directory.h"

using namespace gxp;

TEST_CASE("restarts end when used up, or in a step that fails twice without a checkpoint",
          "[net]") {
  using Failures = std::vector<RestartPolicy::Failure>;
  const auto [most, failures, last] = GENERATE(table<int, Failures, std::string>(
      {{2, {{3, 0}, {5, 0}, {7, 0}}, "all 2 restarts are used up"},
       {0, {{3, 0}}, "all 0 restarts are used up"},
       {9, {{3, 0}, {3, 0}}, "two attempts in a row failed in step 3, and no checkpoint was saved"},
       {9, {{0, 8}, {0, 8}}, "two attempts in a row failed before their first step"},
       {9, {{3, 1}, {3, 2}, {3, 2}}, "two attempts in a row failed in step 3"},
       {9, {{3, 0}, {4, 0}, {3, 0}, {3, 0}}, "two attempts in a row failed in step 3"},
       {9, {{3, 0}, {3, 0, true}, {3, 0}, {3, 0}}, "two attempts in a row failed in step 3"},
       {3, {{3, 0, true}, {3, 0, true}, {3, 0, true}, {3, 0, true}}, "all 3 restarts"}}));
  RestartPolicy policy(most);
  for (size_t i = 0; i < failures.size(); ++i) {
    const auto refusal = policy.refuse(failures[i]);
    CAPTURE(i, refusal.value_or(""));
    CHECK(refusal.has_value() == (i + 1 == failures.size()));
    if (refusal) CHECK(contains(*refusal, last));
  }
}

TEST_CASE("ranks start again after a signal or exit code 5, and after nothing else", "[net]") {
  using Plan = std::vector<std::string>;
  const auto [most, plan, code, attempts] = GENERATE(
      table<std::string, Plan, int, int>({{"3", {"0:well"}, 0, 1},
                                          {"3", {"4:9", "0:well"}, 0, 2},
                                          {"3", {"4:11", "6:6", "0:exit 5", "0:well"}, 0, 4},
                                          {"2", {"1:11", "2:11", "3:11", "0:well"}, 5, 3},
                                          {"5", {"4:11", "4:11", "0:well"}, 5, 2},
                                          {"5", {"4:9", "4:9", "4:9", "0:well"}, 0, 4},
                                          {"5", {"4:11", "4:exit 5", "0:well"}, 5, 2},
                                          {"5", {"4:exit 1", "0:well"}, 1, 1},
                                          {"5", {"4:exit 2", "0:well"}, 2, 1},
                                          {"5", {"4:exit 3", "0:well"}, 3, 1},
                                          {"5", {"4:9", "4:exit 4", "0:well"}, 4, 2},
                                          {"5", {"4:exit 70", "0:well"}, 70, 1},
                                          {"5", {"4:15", "0:well"}, 5, 1},
                                          {"0", {"4:9", "0:well"}, 5, 1}}));
  const TemporaryDirectory directory;
  Launch launch(Arguments{"3", "1", "2000", "fail_in_turn", most, directory / "file"} + plan);
  CHECK(launch.end() == code);
  CAPTURE(plan, launch.errors);
  std::ifstream file(directory / "file");
  std::vector<std::string> jobs;
  for (std::string line; std::getline(file, line);) jobs.push_back(line);
  CHECK(int(jobs.size()) == attempts);
  CHECK(std::ranges::count(jobs, jobs.at(0)) == attempts);
  // The results of one attempt.
  CHECK(launch.output == "attempt " + std::to_string(attempts - 1) + "\n");
}

TEST_CASE("a restart names the rank, how it ended, the step and the count", "[net]") {
  const TemporaryDirectory directory;
  Launch launch(
      {"2", "1", "2000", "fail_in_turn", "3", directory / "file", "4:9", "0:exit 5", "0:11"});
  CHECK(launch.end() == 5);
  for (const char* text :
       {"gxp warn restart 1 of 3: rank 1 was killed by signal 9 (SIGKILL) in step 4; starting as "
        "at first\n",
        "gxp warn restart 2 of 3: rank 1 exited with code 5 before its first step; starting as at "
        "first\n",
        "gxp warn no restart: two attempts in a row failed before their first step\n"})
    CHECK(contains(launch.errors, text));
}

TEST_CASE("launchers decide alike: all start again, or none", "[net]") {
  const HostReport fresh{.max_restarts = 3};
  HostReport done = fresh, lost = fresh, killed = fresh, ended = fresh, other = fresh;
  done.job = lost.job = killed.job = ended.job = "a";
  other.job = "b";
  for (HostReport* report : {&done, &lost, &killed, &ended}) {
    report->attempt = report->restarts = 1;
    report->step = 7;
    report->owns_directories = true;
  }
  done.succeeded = true;
  lost.may_restart = killed.may_restart = true;
  lost.failure = "rank 0 exited with code 5";
  killed.failure = "rank 3 was killed by signal 9 (SIGKILL)";
  killed.was_killed = killed.from_outside = true;
  HostReport late = lost, used_up = lost, unlike = lost;
  late.saved = 4;
  used_up.attempt = used_up.restarts = 3;
  unlike.max_restarts = 2;
  using Reports = std::vector<HostReport>;
  const auto [reports, starts, attempt, text] =
      GENERATE_COPY(table<Reports, bool, int, std::string>(
          {{{fresh, fresh}, true, 0, ""},
           {{done, done}, false, 0, ""},
           {{lost, killed},
            true,
            2,
            "restart 2 of 3: rank 3 was killed by signal 9 (SIGKILL) in step 7; starting anew"},
           {{late, killed}, true, 2, "in step 7; continuing from the checkpoint of step 4"},
           {{lost, done}, true, 2, "rank 0 exited with code 5 in step 7"},
           {{lost, fresh}, true, 2, "restart 2 of 3: host 1 was lost in step 7"},
           {{fresh, lost}, true, 2, "host 0 was lost; continuing from its newest checkpoint, if"},
           {{lost, ended}, false, 0, ""},
           {{done, ended}, false, 0, ""},
           {{used_up, used_up}, false, 0, "no restart: all 3 restarts are used up"},
           {{lost, unlike}, false, 0, "--max-restarts is 3 on host 0 and 2 on host 1"},
           {{lost, other}, false, 0, "host 1 is in another job"}}));
  RestartPolicy policy(3);
  Reports numbered = reports;
  numbered[1].host = 1;
  const bool knows = !numbered[0].job.empty();
  const HostDecision decision =
      decide(numbered, policy, "new",
             {.least = 2, .last = knows ? std::vector{0, 1} : std::vector<int>{}});
  CAPTURE(decision.text, text);
  CHECK(decision.starts == starts);
  CHECK((!starts || decision.attempt == attempt));
  CHECK((!starts || decision.job == (reports[0].job + reports[1].job).substr(0, 1) ||
         decision.job == "new"));
  CHECK(contains(decision.text, text));
  CHECK(decision.text.empty() == text.empty());
}

TEST_CASE("as many hosts take part as can share the work", "[net]") {
  const auto powers_of_2 = [](int hosts) { return (hosts & (hosts - 1)) == 0; };
  using Hosts = std::vector<int>;
  const auto [least, here, chosen] =
      GENERATE(table<int, Hosts, Hosts>({{1, {0}, {0}},
                                         {2, {0}, {}},
                                         {1, {0, 2, 5}, {0, 2}},
                                         {3, {0, 2, 5}, {}},
                                         {2, {0, 1, 3, 4}, {0, 1, 3, 4}}}));
  CHECK(choose_hosts(here, {.least = least, .accepts = powers_of_2}) == chosen);
}

TEST_CASE("launchers go on without a host, and stop for one more", "[net]") {
  HostReport failed{.job = "a", .max_restarts = 3, .may_restart = true, .failure = "rank 0 failed"};
  HostReport paused{.job = "a",
                    .attempt = 4,
                    .restarts = 2,
                    .max_restarts = 3,
                    .paused = true,
                    .has_paused = true,
                    .step = 9,
                    .saved = 9,
                    .owns_directories = true};
  HostReport fresh{.max_restarts = 3}, done = paused, other = paused;
  done.paused = done.has_paused = false;
  done.succeeded = true;
  other.has_paused = false;
  HostReport lost = done, late = failed;
  lost.succeeded = false;
  lost.may_restart = true;
  lost.failure = "rank 1 exited with code 5";
  late.was_killed = late.from_outside = true;
  using Reports = std::vector<std::pair<int, HostReport>>;
  using Hosts = std::vector<std::string>;
  const auto [reports, last, hosts, restarts, text] =
      GENERATE_COPY(table<Reports, std::vector<int>, Hosts, int, std::string>(
          {{{{0, failed}, {2, failed}},
            {0, 1, 2},
            {"0", "2"},
            1,
            "host 1 was lost before its first step; starting as at first, on hosts 0, 2"},
           {{{0, failed}}, {0, 1}, {}, 0, "no restart: 1 hosts are too few"},
           {{{0, paused}, {1, other}, {3, fresh}},
            {0, 1},
            {"0", "1", "3"},
            2,
            "another host has come; continuing from the checkpoint of step 9"},
           {{{0, other}, {1, other}}, {0, 1}, {}, 0, ""},
           {{{0, done}, {1, done}, {2, fresh}}, {0, 1}, {}, 0, ""},
           {{{0, done}, {1, fresh}},
            {0, 1},
            {"0", "1"},
            3,
            "restart 3 of 3: host 1 was lost in step 9"},
           // What host 2 reports is of an earlier attempt.
           {{{0, lost}, {1, lost}, {2, late}},
            {0, 1},
            {"0", "1", "2"},
            3,
            "restart 3 of 3: rank 1 exited with code 5 in step 9"}}));
  std::vector<HostReport> numbered;
  for (auto [host, report] : reports) {
    report.host = host;
    numbered.push_back(report);
  }
  RestartPolicy policy(3);
  const HostDecision decision = decide(numbered, policy, "new", {.least = 2, .last = last});
  CAPTURE(decision.text);
  CHECK(decision.hosts == hosts);
  CHECK(decision.starts == !hosts.empty());
  CHECK(decision.restarts == restarts);
  CHECK(contains(decision.text, text));
  CHECK(contains(decision.text, ", on hosts") == contains(text, ", on hosts"));
  if (decision.starts) CHECK(decision.attempt == numbered[0].attempt + 1);
  const bool done_well = std::ranges::all_of(
      numbered, [](const HostReport& report) { return report.succeeded || report.job.empty(); });
  if (!decision.starts) CHECK(decision.failed == !done_well);
}
