#include "lib/job/join.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/collective/communicator.h"
#include "lib/device/device.h"
#include "lib/net/socket/secret.h"
#include "lib/net/socket/socket.h"
#include "lib/net/store/store_server.h"
#include "tests/catch.h"
#include "tests/error_of.h"

using namespace gxp;

namespace {

// One of two ranks, as gxp's launcher starts it.
void run_one(int rank, const Fd& listener, const Secret& secret,
             const std::function<void(Communicator&)>& work) {
  const Endpoint master = local_endpoint(listener.get());
  Environment environment{
      {"GXP_RANK", std::to_string(rank)},       {"GXP_WORLD_SIZE", "2"},
      {"GXP_LOCAL_RANK", std::to_string(rank)}, {"GXP_LOCAL_WORLD_SIZE", "2"},
      {"GXP_MASTER_ADDR", master.host},         {"GXP_MASTER_PORT", std::to_string(master.port)},
      {kSecretVariable, secret.hex()}};
  if (rank == 0) environment[kStoreFdVariable] = std::to_string(dup(listener.get()));
  JobSettings settings;
  settings.comm.transport = "tcp";
  settings.comm.streams = 1;
  settings.comm.socket_buffer_bytes = 1 << 18;  // nothing is left to try out
  const auto device = make_cpu_device();
  run_rank({}, environment, settings, *device, work);
}

}  // namespace

TEST_CASE("a rank that stands still is named where nothing else tells for whom others wait",
          "[job]") {
  const Fd listener = listen_tcp({"127.0.0.1", 0});
  const Secret secret = Secret::generate();
  const pid_t other = fork();
  if (other == 0) {
    try {
      run_one(1, listener, secret, [](Communicator&) { std::raise(SIGSTOP); });
    } catch (...) {
    }
    _exit(0);
  }
  const Caught caught = error_of([&] {
    run_one(0, listener, secret, [&](Communicator&) {
      waitpid(other, nullptr, WUNTRACED);
      fail(ErrorKind::kPeer, "not complete after 3 s");
    });
  });
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  CAPTURE(caught.message);
  CHECK(caught.kind == ErrorKind::kPeer);
  CHECK(caught.says("rank 1: it does not respond, its process may be stopped"));
}
