// Ranks that are processes, one of which may be killed, and what became of them.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "lib/base/deadline.h"
#include "tests/transport/worlds.h"

namespace gxp {

class RankProcesses {
 public:
  // A rank's, in its process; what it returns, or throws, is kept.
  using Part = std::function<std::string(World&, int rank)>;

  RankProcesses()
      : board_(new (mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                         -1, 0)) Board{}) {}
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;
  ~RankProcesses() { munmap(board_, sizeof(Board)); }

  // Returns when all have ended.
  void run(const std::string& world_kind, int ranks, const Part& part) {
    std::vector<pid_t> processes;
    const World world(world_kind, ranks, [&](World& early) {
      for (int rank = 0; rank < ranks; ++rank) {
        processes.push_back(fork());
        if (processes.back() == 0) be_rank(early, rank, part);
      }
    });
    for (const pid_t process : processes) waitpid(process, nullptr, 0);
  }
  // In a rank's process: kills it.
  void strike() {
    board_->struck_s = now();
    ::kill(::getpid(), SIGKILL);
  }

  [[nodiscard]] bool has_struck() const { return board_->struck_s > 0; }
  [[nodiscard]] bool has_ended(int rank) const { return of(rank).has_ended; }
  [[nodiscard]] double seconds_after_strike(int rank) const {
    return of(rank).seconds - board_->struck_s;
  }
  [[nodiscard]] std::string text(int rank) const { return of(rank).text.data(); }
  // A count of the rank's, which all processes see.
  [[nodiscard]] int& count(int rank) { return board_->ranks[size_t(rank)].count; }

 private:
  struct Ending {
    std::atomic<bool> has_ended;
    double seconds;
    int count;
    std::array<char, 2048> text;
  };
  struct Board {  // in memory that all processes see
    std::array<Ending, 8> ranks;
    std::atomic<double> struck_s;
  };

  static double now() {
    return std::chrono::duration<double>(Deadline::Clock::now().time_since_epoch()).count();
  }
  [[nodiscard]] const Ending& of(int rank) const { return board_->ranks[size_t(rank)]; }

  [[noreturn]] void be_rank(World& world, int rank, const Part& part) {
    std::string text;
    try {
      text = part(world, rank);
    } catch (const std::exception& error) {
      text = error.what();
    }
    Ending& ending = board_->ranks[size_t(rank)];
    ending.seconds = now();
    text.copy(ending.text.data(), ending.text.size() - 1);
    ending.has_ended = true;
    ::_exit(0);
  }

  Board* board_;
};

}  // namespace gxp
