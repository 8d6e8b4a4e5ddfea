#include "lib/net/identity/pmi.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "lib/base/fd.h"
#include "tests/catch.h"
#include "tests/error_of.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

std::array<Fd, 2> socket_pair() {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

std::string read_line(int socket) {
  std::string line;
  for (char next = 0; read(socket, &next, 1) == 1 && next != '\n';) line += next;
  return line;
}

void say(int socket, const std::string& line) {
  REQUIRE(write(socket, (line + "\n").data(), line.size() + 1) == ssize_t(line.size()) + 1);
}

// A process manager that answers one rank after the other as Hydra does, with Slurm's "rc=0" where
// it differs; `change` may alter an answer.
class Manager {
 public:
  using Change = std::function<std::string(const std::string& request, std::string answer)>;

  explicit Manager(int ranks, Change change = {}) : change_(std::move(change)) {
    for (int rank = 0; rank < ranks; ++rank) {
      auto [mine, theirs] = socket_pair();
      mine_.push_back(std::move(mine));
      theirs_.push_back(std::move(theirs));
    }
  }
  [[nodiscard]] int socket_of(int rank) const { return theirs_[size_t(rank)].get(); }
  std::vector<std::string> requests;  // of rank 0, without what it put

  // Serves all ranks, in step, until each has finalized or gone.
  void serve() {
    while (!mine_.empty()) {
      std::vector<std::string> lines;
      for (const Fd& socket : mine_) lines.push_back(read_line(socket.get()));
      requests.push_back(lines[0].substr(0, lines[0].find(" value=")));
      // A put comes from rank 0 alone, so the others are then a request ahead.
      if (lines[0].starts_with("cmd=put ")) {
        answer(0, lines[0]);
        lines[0] = read_line(mine_[0].get());
      }
      for (size_t rank = 0; rank < lines.size(); ++rank) answer(rank, lines[rank]);
      if (lines[0].starts_with("cmd=finalize") || lines[0].empty()) mine_.clear();
    }
  }

 private:
  void answer(size_t rank, const std::string& request) {
    if (request.empty()) return;
    const std::string text = change_ ? change_(request, usual(request)) : usual(request);
    if (!text.empty()) say(mine_[rank].get(), text);
  }
  std::string usual(const std::string& request) {
    const size_t value = request.find(" value=");
    if (request.starts_with("cmd=put kvsname=kvs_1 key=")) value_ = request.substr(value + 7);
    if (request.starts_with("cmd=put")) return "cmd=put_result rc=0 msg=success";
    if (request.starts_with("cmd=init")) return "cmd=response_to_init rc=0 pmi_version=1";
    if (request == "cmd=get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1";
    if (request == "cmd=barrier_in") return "cmd=barrier_out";
    if (request == "cmd=finalize") return "cmd=finalize_ack";
    return "cmd=get_result rc=0 msg=success value=" + value_;
  }

  Change change_;
  std::string value_;
  std::vector<Fd> mine_, theirs_;
};

// Each rank's text, or what it throws.
std::vector<std::string> pass(Manager& manager, int ranks, const std::string& text,
                              std::chrono::milliseconds time = 10s) {
  std::vector<std::string> got(static_cast<size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        const Caught caught = error_of([&] {
          got[size_t(rank)] = pass_by_pmi(manager.socket_of(rank), rank == 0,
                                          rank == 0 ? text : "x", Deadline::after(time))
                                  .value_or("closed");
        });
        if (!caught.message.empty()) got[size_t(rank)] = caught.message;
        shutdown(manager.socket_of(rank), SHUT_RDWR);
      });
    }
    manager.serve();
  }
  return got;
}

}  // namespace

TEST_CASE("rank 0's text reaches all ranks through the process manager", "[net]") {
  for (const int ranks : {1, 2, 5}) {
    Manager manager(ranks);
    CHECK(pass(manager, ranks, "1,10.0.0.7,4711,given") ==
          std::vector<std::string>(size_t(ranks), "1,10.0.0.7,4711,given"));
    // Hydra takes a rank that ends without the last one for a crash.
    CHECK(manager.requests.back() == "cmd=finalize");
  }
}

TEST_CASE("a process manager that says no is told with its words, not with the text", "[net]") {
  Manager manager(1, [](const std::string& request, std::string answer) {
    return request.starts_with("cmd=put") ? "cmd=put_result rc=-1 msg=full" : answer;
  });
  const std::string said = pass(manager, 1, "secret-word")[0];
  CHECK(said.find("cmd=put_result rc=-1 msg=full") != std::string::npos);
  CHECK(said.find("secret-word") == std::string::npos);
}

TEST_CASE("a process manager that speaks something else is not believed", "[net]") {
  for (const std::string& other :
       {std::string("HTTP/1.1 400 Bad Request"), std::string(9000, 'x')}) {
    Manager manager(1, [&](const std::string&, const std::string&) { return other; });
    CHECK(pass(manager, 1, "text")[0].find("PMI") != std::string::npos);
  }
}

TEST_CASE("a rank that does not come ends the wait at the deadline", "[net]") {
  Manager manager(1, [](const std::string& request, std::string answer) {
    return request == "cmd=barrier_in" ? "" : answer;
  });
  CHECK(pass(manager, 1, "text", 50ms)[0].find("not all answered within 0.05 s") !=
        std::string::npos);
  auto [mine, theirs] = socket_pair();
  const auto silent = [&] { pass_by_pmi(theirs.get(), true, "text", Deadline::after(20ms)); };
  CHECK(error_of(silent).kind == ErrorKind::kPeer);
}

TEST_CASE("a closed or foreign PMI_FD is nothing, not an error", "[net]") {
  auto [mine, theirs] = socket_pair();
  mine.reset();
  CHECK_FALSE(pass_by_pmi(theirs.get(), true, "text", Deadline::after(10s)));
  CHECK_FALSE(pass_by_pmi(-1, true, "text", Deadline::after(10s)));
  const Fd file(open("/dev/null", O_RDWR));
  CHECK_FALSE(pass_by_pmi(file.get(), true, "text", Deadline::after(10s)));
}
