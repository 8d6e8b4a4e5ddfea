// Whatever goes wrong on one of four ranks, at whichever step of whichever algorithm: every other
// rank says who it was.
#include <fmt/format.h>

#include <deque>
#include <map>
#include <memory>

#include "tests/catch.h"
#include "tests/collective/faulty_job.h"
#include "tests/transport/worlds.h"

using namespace gxp;

namespace {

using Mishap = Scene::Mishap;

constexpr size_t kAtOnce = 6;  // jobs; they sleep most of the time

// Runs the scenes, some at a time. Returns what is wrong, and how long the verdicts took.
struct Judgement {
  std::vector<std::string> wrong;
  std::map<Mishap, double> longest_s;
  size_t scenes = 0;
};

Judgement judge(const std::vector<Scene>& scenes) {
  Judgement judgement;
  std::deque<std::pair<Scene, std::unique_ptr<FaultyJob>>> running;
  const auto finish_first = [&] {
    auto [scene, job] = std::move(running.front());
    running.pop_front();
    std::string problem = job->judge();
    // Where it runs too slowly for its short deadline, it does so with a longer one.
    if (!problem.empty()) {
      scene.timeout_s = 3;
      problem = FaultyJob(scene).judge();
    }
    if (!problem.empty()) judgement.wrong.push_back(to_string(scene) + ": " + problem);
    double& longest = judgement.longest_s.try_emplace(scene.mishap, -1).first->second;
    longest = std::max(longest, job->seconds_to_verdict());
    ++judgement.scenes;
  };
  for (const Scene& scene : scenes) {
    if (running.size() == kAtOnce) finish_first();
    running.emplace_back(scene, std::make_unique<FaultyJob>(scene));
  }
  while (!running.empty()) finish_first();
  return judgement;
}

// How many places there are in the call where each rank may be stopped.
std::vector<uint64_t> places(const std::string& transport, const Algorithm& algorithm) {
  const Scene scene{.transport = transport, .algorithm = &algorithm};
  if (through_tiles(scene)) return std::vector<uint64_t>(FaultyJob::kRanks, kPlaces);
  FaultyJob job(scene);
  std::vector<uint64_t> counts;
  for (const auto& rank : job.finish()) counts.push_back(rank.moves);
  return counts;
}

// Without CMA, only calls through tiles differ.
std::vector<const Algorithm*> algorithms_of(const std::string& transport) {
  std::vector<const Algorithm*> rows;
  for (const Algorithm& algorithm : algorithms()) {
    const Scene scene{.transport = transport, .algorithm = &algorithm};
    if (transport != "shm mapped" || through_tiles(scene)) rows.push_back(&algorithm);
  }
  return rows;
}

std::vector<Scene> strikes(const std::string& transport) {
  std::vector<Scene> scenes;
  for (const Algorithm* algorithm : algorithms_of(transport)) {
    const std::vector<uint64_t> counts = places(transport, *algorithm);
    for (int victim = 0; victim < FaultyJob::kRanks; ++victim) {
      for (uint64_t at = 0; at < counts[size_t(victim)]; ++at) {
        for (const Mishap mishap : {Mishap::kStop, Mishap::kKill})
          scenes.push_back({transport, algorithm, mishap, victim, at});
      }
    }
  }
  return scenes;
}

std::vector<Scene> mistakes(const std::string& transport, int victims) {
  std::vector<Scene> scenes;
  int next = 0;
  for (const Algorithm* algorithm : algorithms_of(transport)) {
    for (int i = 0; i < victims; ++i) {
      const int victim = next++ % FaultyJob::kRanks;
      scenes.push_back({transport, algorithm, Mishap::kLate, victim});
      if (algorithm->collective == Collective::kBarrier) continue;  // the next call is the same
      scenes.push_back({transport, algorithm, Mishap::kSkip, victim});
      scenes.push_back({transport, algorithm, Mishap::kCount, victim});
    }
  }
  return scenes;
}

// Returns what the long test tells of its times.
std::string check_all(const std::vector<Scene>& scenes) {
  const Judgement judgement = judge(scenes);
  for (const std::string& problem : judgement.wrong) FAIL_CHECK(problem);
  std::string text = fmt::format("{} scenes", judgement.scenes);
  for (const auto& [mishap, seconds] : judgement.longest_s)
    text += fmt::format("; {} within {:.3f} s", to_string(mishap), seconds);
  return text;
}

}  // namespace

TEST_CASE("a rank that errs, stops or dies in a call is named by all others") {
  const auto in = [](const char* transport, const char* name, Collective collective, Mishap mishap,
                     int victim, uint64_t at = 0) {
    return Scene{transport, find_algorithm(name, collective), mishap, victim, at};
  };
  using enum Collective;
  check_all({in("shm", "ring", kAllReduce, Mishap::kStop, 2, 3),
             in("tcp", "halving-doubling", kAllReduce, Mishap::kStop, 3, 2),
             in("shm", "direct", kAllReduce, Mishap::kStop, 1, 5),
             in("shm mapped", "direct", kAllReduce, Mishap::kStop, 1, 5),
             in("tcp", "binomial", kBroadcast, Mishap::kStop, 0),
             in("tcp", "ring", kAllGather, Mishap::kKill, 1, 4),
             in("shm", "direct", kAllToAll, Mishap::kKill, 3, 2),
             in("shm mapped", "direct", kAllToAll, Mishap::kKill, 3, 6),
             in("shm", "double-tree", kReduce, Mishap::kKill, 0),
             in("shm", "direct", kAllReduce, Mishap::kSkip, 2),
             in("tcp", "bruck", kAllToAll, Mishap::kSkip, 0),
             in("shm", "direct", kReduceScatter, Mishap::kCount, 1),
             in("tcp", "ring", kReduceScatter, Mishap::kCount, 3),
             in("shm", "dissemination", kBarrier, Mishap::kLate, 2)});
}

TEST_CASE("every mishap in every algorithm is blamed on who made it", "[.long]") {
  const std::string transport = GENERATE(from_range(of_processes(rows_and({"shm mapped"}))));
  WARN(transport << ": " << check_all(mistakes(transport, FaultyJob::kRanks)));
  WARN(transport << ": " << check_all(strikes(transport)));
}
