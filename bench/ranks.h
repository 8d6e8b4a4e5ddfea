// Ranks as processes of this host, for programs that measure.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <utility>

#include "lib/net/socket/socket.h"
#include "lib/net/store/store.h"
#include "lib/net/store/store_server.h"

namespace gxp {

// Runs body(store, secret) on so many ranks, of which this process is rank 0; returns when all have
// ended. `prepare` comes first in each of them: it gets the rank.
inline void run_ranks(
    int ranks, Deadline deadline, const std::function<void(Store&, const Secret&)>& body,
    const std::function<void(int)>& prepare = [](int) {}) {
  const Secret secret = Secret::generate();
  Fd listener = listen_tcp({"127.0.0.1", 0});
  const Endpoint server = local_endpoint(listener.get());
  const auto run_rank = [&](int rank) {
    prepare(rank);
    Store store(server, rank, ranks, secret, deadline);
    body(store, secret);
    store.close();
  };
  for (int rank = 1; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    listener.reset();
    run_rank(rank);
    _exit(0);
  }
  const StoreServer store_server(std::move(listener), ranks, secret);
  run_rank(0);
  while (wait(nullptr) > 0) {
  }
}

}  // namespace gxp
