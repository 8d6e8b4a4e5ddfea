// A rank's side of the rendezvous: a small key-value store, and the alarm line of the job.
//
// Every rank, also rank 0, connects to the StoreServer in rank 0's process, proves that it knows
// the job secret, and keeps the connection until close(). A connection that ends otherwise tells
// all ranks that this rank has failed; so the destructor without close() is a failure report too.
// All that travels after the handshake is encrypted and authenticated (seal.h): a byte that is
// altered, left out, repeated or moved ends the job, with a verdict that says so.
//   Threads  all functions, from any thread, except that close() and the destructor come last.
//   Errors   kPeer: a rank is late (named), or the job has failed (the message has the verdict).
//   Values   any bytes, up to kMaxValueBytes; keys and names up to kMaxKeyBytes.
//   Cost     one round trip to rank 0; for addresses and settings, not for tensors.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"
#include "lib/net/socket/secret.h"
#include "lib/net/socket/socket.h"
#include "lib/net/store/sealed_frames.h"
#include "lib/net/store/verdict.h"

namespace gxp {

class Store {
 public:
  // Connects, trying again until the deadline while rank 0 does not listen yet, and joins.
  // Throws kPeer if rank 0 does not come, has another secret or another world size, or if another
  // process has joined as this rank.
  // `silence`: as detect_silence().
  Store(const Endpoint& server, int rank, int world_size, const Secret& secret, Deadline deadline,
        Deadline::Duration silence = kUsualSilence);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int world_size() const { return world_size_; }

  // In place of a rank that has ended: if it had not joined, `reason` is the verdict. Throws kPeer
  // if rank 0 does not answer, or has another secret.
  static void report_absence(const Endpoint& server, int rank, int world_size, const Secret& secret,
                             std::string_view reason, Deadline deadline);

  // Adds `prefix` to all keys and names from now on, so that they do not collide with earlier ones.
  // All ranks call it with the same prefix, while no other call is under way.
  void begin_keys_with(std::string prefix) { prefix_ = std::move(prefix); }
  // Overwrites. Does not wait for the server.
  void set(std::string_view key, std::string_view value);
  // Waits until some rank has set `key`. `setter`: the rank that is to do so, which becomes the
  // culprit at the deadline; -1: any.
  std::string get(std::string_view key, Deadline deadline, int setter = -1);
  // The same, but nothing at the deadline, which fails nobody.
  std::optional<std::string> find(std::string_view key, Deadline deadline);
  // Rank 0 calls `make`; all ranks get what it returned.
  std::string from_rank_0(std::string_view key, const std::function<std::string()>& make,
                          Deadline deadline);
  // All ranks give a value; each gets all, in order of rank. At the deadline the error names the
  // ranks that have not arrived; the first of them is the culprit, rank 0 only if it is alone, and
  // the job fails for all.
  std::vector<std::string> gather(std::string_view name, std::string_view value, Deadline deadline);
  // Returns when all ranks have called it.
  void barrier(std::string_view name, Deadline deadline) { gather(name, "", deadline); }

  // Reports a failure to all ranks. `culprit`: this rank, or the one that it cannot reach.
  // lib/net/store/store_server.h says which report counts. Later calls have no effect.
  void abort(int culprit, std::string_view reason) noexcept;
  // To be called after waiting too long for another rank: all ranks are asked for their state, and
  // the resulting verdict (lib/net/store/store_server.h) ends the job for all. Returns it within
  // 1.5 s; if rank 0's server does not answer even then, that is the verdict. `suspect` and
  // `reason` are this rank's own guess, for when the answers explain nothing. Until the call
  // returns, this rank should keep its state and connections: the others are judged by them.
  FailureVerdict inquire(int suspect, std::string_view reason);
  // `describe` gives this rank's answer to inquiries, up to kMaxValueBytes; it is called on the
  // store's own thread, soon and often, also while this rank computes, and must not throw. Waits
  // for a call of the earlier function that is under way; an empty function removes it.
  void on_inquiry(std::function<std::string()> describe);

  // The first cause, once the job has failed.
  [[nodiscard]] std::optional<FailureVerdict> verdict() const;
  // Waits for the verdict. To be called after losing a peer, before blaming any rank.
  std::optional<FailureVerdict> wait_verdict(Deadline deadline) const;
  // `alarm` is called once, when there is a verdict: from the store's own thread, from a thread in
  // inquire(), or at once from the calling thread if there is a verdict already. It must stay
  // callable until close() and must call neither close() nor the destructor.
  void on_abort(std::function<void(const FailureVerdict&)> alarm);

  // `witness` is called once, with the verdict, before anyone else here learns of it; at most one,
  // from the start. Otherwise as an alarm; it must return soon.
  void set_witness(std::function<void(const FailureVerdict&)> witness) {
    const std::lock_guard lock(mutex_);
    witness_ = std::move(witness);
  }

  // Says goodbye: this rank ends in good order.
  void close() noexcept;

 private:
  Store(const Endpoint& server, int rank, int world_size)
      : server_(server), rank_(rank), world_size_(world_size) {}
  [[nodiscard]] Fd connect(Deadline deadline) const;
  int authenticate(const Secret& secret, Deadline deadline, Deadline::Duration silence);
  void join(Deadline deadline);
  Frame read_frame(Deadline deadline);
  bool receive();
  [[nodiscard]] std::string server_name() const;
  Frame ask_to_join(Deadline deadline);
  void watch();
  void watch_until_end();
  void handle(Frame frame);
  void answer_inquiry(uint32_t round) noexcept;
  void end(std::optional<FailureVerdict> verdict);
  void send(const Frame& frame, Deadline deadline);
  std::optional<std::string> request(Frame frame, Deadline deadline);
  struct Missing {
    std::vector<int> ranks;  // that a gather waits for
    std::string question;    // question_about() the first of them, by rank 0
  };
  [[nodiscard]] FailureVerdict silent_server() const;
  Missing ask_missing(std::string_view act, std::string_view key);
  [[noreturn]] void fail_late(std::string_view act, const std::string& what, Deadline deadline);
  void check_alive(std::string_view act);
  void stop() noexcept;

  const Endpoint server_;
  const int rank_;
  const int world_size_;
  std::string prefix_;
  Fd socket_;
  std::optional<FrameReader> reader_;  // the watcher's, once it runs
  std::mutex write_mutex_;             // one frame at a time; guards sealer_ and cut_short_
  std::optional<Sealer> sealer_;
  bool cut_short_ = false;  // a frame was: none can follow
  std::mutex inquiry_mutex_;
  std::function<std::string()> describe_;  // guarded by inquiry_mutex_, also while it runs

  mutable std::mutex mutex_;  // guards all below but watcher_
  mutable std::condition_variable changed_;
  uint32_t last_request_ = 0;
  std::map<uint32_t, std::optional<std::string>> answers_;  // empty: still awaited
  std::optional<FailureVerdict> verdict_;
  std::vector<std::function<void(const FailureVerdict&)>> alarms_;
  std::function<void(const FailureVerdict&)> witness_;
  bool ended_ = false;    // no more answers will come
  bool closing_ = false;  // the end of the connection is our own doing

  std::jthread watcher_;  // reads everything that the server sends
};

}  // namespace gxp
