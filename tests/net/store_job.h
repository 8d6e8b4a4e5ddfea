// A store's server with its ranks, as threads of this process or as processes of their own.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/net/socket/authenticate.h"
#include "lib/net/socket/seal.h"
#include "lib/net/store/store.h"
#include "lib/net/store/store_server.h"
#include "tests/net/server_side.h"

namespace gxp {

inline Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

// A server with its secret.
struct Job {
  explicit Job(int size)
      : world_size(size),
        secret(Secret::generate()),
        server(std::make_unique<StoreServer>(listen_tcp({"127.0.0.1", 0}), size, secret)),
        endpoint{"127.0.0.1", server->port()} {}

  [[nodiscard]] std::unique_ptr<Store> join(int rank) const {
    return std::make_unique<Store>(endpoint, rank, world_size, secret, soon());
  }
  [[nodiscard]] std::vector<std::unique_ptr<Store>> join_all() const {
    std::vector<int> ranks(static_cast<size_t>(world_size));
    std::iota(ranks.begin(), ranks.end(), 0);
    return join_these(ranks);
  }
  [[nodiscard]] std::vector<std::unique_ptr<Store>> join_these(
      const std::vector<int>& ranks) const {
    std::vector<std::unique_ptr<Store>> stores;
    for (const int rank : ranks) stores.push_back(join(rank));
    return stores;
  }

  int world_size;
  Secret secret;
  std::unique_ptr<StoreServer> server;
  Endpoint endpoint;
};

// A server that lets rank 1 of two join, and does nothing from then on.
struct SilentServer {
  SilentServer() {
    const Fd listener = listen_tcp({"127.0.0.1", 0});
    const Secret secret = Secret::generate();
    auto joins = std::async(std::launch::async, [&] {
      return std::make_unique<Store>(local_endpoint(listener.get()), 1, 2, secret, soon());
    });
    socket = accept_connection(listener);
    const SealKeys keys = authenticate_server(socket.get(), secret, "store", soon()).keys;
    Sealer sealer(keys.cipher, keys.sending, Protection::kEncrypt);
    std::string frame, sealed;
    append_frame(frame, {FrameType::kWelcome, "", "", 0, 0});
    append_sealed(sealed, frame, sealer);
    write_all(socket.get(), std::as_bytes(std::span(sealed)), "rank 1", soon());
    rank = joins.get();
  }

  Fd socket;
  std::unique_ptr<Store> rank;
};

// A process that joins as `rank` and then waits to be killed.
class RankProcess {
 public:
  RankProcess(const Job& job, int rank) {
    std::array<int, 2> ready{};
    check_sys(pipe(ready.data()), "make a pipe");
    const std::string port = std::to_string(job.endpoint.port), name = std::to_string(rank);
    const std::string size = std::to_string(job.world_size), hex = job.secret.hex();
    const std::string out = std::to_string(ready[1]);
    pid_ = fork();
    if (pid_ == 0) {
      execl(GXP_LAUNCH_CHILD, "child", "join", port.c_str(), name.c_str(), size.c_str(),
            hex.c_str(), out.c_str(), nullptr);
      _exit(127);
    }
    const Fd read_end(ready[0]);
    Fd(ready[1]).reset();
    char byte = 0;
    joined_ = read(read_end.get(), &byte, 1) == 1;
  }
  ~RankProcess() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Returns once all of its threads stand still.
  void stop() const {
    ::kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }
  [[nodiscard]] bool joined() const { return joined_; }

 private:
  pid_t pid_ = -1;
  bool joined_ = false;
};

}  // namespace gxp
