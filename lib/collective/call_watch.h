// Watches calls that were queued on a GPU, where nothing on the host waits for them: vendor
// libraries have no deadlines, so a call whose peer is lost would run for ever.
//
// A thread asks the oldest call every 2 ms while there is one. Its time starts when it begins on
// the GPU: before that it waits for this rank's own arithmetic, whose duration is unknown.
//   Threads  one adds and drains; the watch has one of its own, from the first call on.
//   Cost     some microseconds of a core for each look.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "lib/base/deadline.h"
#include "lib/base/error.h"
#include "lib/collective/engine/engine.h"

namespace gxp {

class CallWatch {
 public:
  struct Watched {
    std::string text;  // "all-reduce 17 (4096 f32, sum)"
    Engine* engine = nullptr;
    std::unique_ptr<QueuedCall> call;
    std::chrono::milliseconds timeout{};
  };
  // The action after a call has failed; later calls are dropped. Called on the
  // watch's thread, or in drain(), once for each failure.
  using OnFailure = std::function<void(const Watched& failed, const Error& error)>;

  CallWatch(int log_rank, OnFailure on_failure)
      : log_rank_(log_rank), on_failure_(std::move(on_failure)) {}
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  // In the order of the GPU.
  void add(Watched watched);
  // Returns when no call is under way any more: each is done, or one has failed.
  void drain();
  // Whether calls of this engine are still under way, after a last look.
  [[nodiscard]] bool is_busy(const Engine& engine);
  // Forgets calls of an engine that ends, or all. Waits for a failure that is being dealt with.
  void forget(const Engine& engine) {
    forget_if([&](const Watched& call) { return call.engine == &engine; });
  }
  void forget_all() {
    forget_if([](const Watched&) { return true; });
  }

 private:
  void forget_if(const std::function<bool(const Watched&)>& which);
  bool look();
  void serve(const std::stop_token& stop);
  [[nodiscard]] bool passes(Watched& watched);

  int log_rank_;
  OnFailure on_failure_;
  std::mutex mutex_;  // guards the next three; held while a call is asked
  std::condition_variable_any changed_;
  std::deque<Watched> calls_;
  std::optional<Deadline> deadline_;  // of the first call, once it runs
  std::mutex handling_;               // held while a failure is dealt with; taken after mutex_
  std::jthread thread_;
};

}  // namespace gxp
