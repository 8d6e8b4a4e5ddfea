// Rank 0's side of the rendezvous store: a small key-value server that also knows who is alive.
//
// One thread serves all clients and never waits for one of them. A client that has not proved its
// rank costs its socket and some hundred bytes (lib/net/store/store_clients.h). Once all ranks have
// joined or are known to have ended, no further connection is accepted. A rank's messages are
// limited in size (lib/net/socket/frame.h) and sealed (lib/net/socket/seal.h). If bytes were altered
// in transit, a verdict says so and names their sender.
//
// The verdict. The first cause of a failure is recorded once and pushed to all ranks, also to those
// that join later. Evidence, best first:
//   - a rank whose connection ends without goodbye, that reports itself, or that has ended before
//     it joined, as its launcher says: the verdict at once;
//   - a rank that accuses another: it may be a consequence seen before its cause, so 100 ms are
//     left for better evidence; then the accused is the culprit or, if it has accused another
//     rank itself, that one, and so on.
//
// The inquiry. A rank that has waited too long asks what all ranks are doing. Each answers from its
// store's own thread, whatever its other threads do; one that has not within 500 ms counts as
// silent. DiagnosisHooks make a verdict of the answers; while their finding is not settled the
// ranks are asked again every 50 ms within that time. Without diagnostics, or if they find nothing,
// the first silent rank is the verdict, or else the asking rank's suspicion. Better evidence, as
// above, ends an inquiry.
//
// The survey. Rank 0's process asks the same of all ranks, without consequences.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/environment.h"
#include "lib/base/fd.h"
#include "lib/net/identity/identity.h"
#include "lib/net/socket/secret.h"
#include "lib/net/socket/socket.h"
#include "lib/net/store/verdict.h"

namespace gxp {

inline constexpr const char* kStoreFdVariable = "GXP_STORE_FD";

class StoreServer {
 public:
  // Serves on a listening socket from now on. `silence`: as detect_silence().
  StoreServer(Fd listener, int world_size, const Secret& secret,
              Deadline::Duration silence = kUsualSilence);
  // After a verdict, waits 1 s at most for the ranks that have neither joined nor ended, to tell it
  // to them. Delivers messages queued for the clients, for 1 s at most, and tells the clients that
  // the store ends normally.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  [[nodiscard]] int port() const;
  // The ranks that have joined and are there, in order.
  [[nodiscard]] std::vector<int> members() const;
  [[nodiscard]] bool has_failed() const;  // there is a verdict
  // Waits for a call that is under way. Empty DiagnosisHooks remove the earlier ones.
  void set_diagnostics(DiagnosisHooks diagnostics);
  // What each rank answers within `patience`. Threads: any, one at a time. Empty if the server does
  // not come to it.
  std::vector<RankAnswer> survey(Deadline::Duration patience);
  // Waits until `ranks` of them, all unless told, have joined and said goodbye; false if there is a
  // verdict instead or the deadline passes. Rank 0 calls it last, so that no rank loses the store
  // early.
  bool wait_goodbyes(Deadline deadline);
  bool wait_goodbyes(int ranks, Deadline deadline);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace gxp
