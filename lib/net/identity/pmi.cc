#include "lib/net/identity/pmi.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <span>

#include "lib/base/error.h"
#include "lib/net/socket/socket.h"

namespace gxp {
namespace {

constexpr std::string_view kPeer = "the process manager (PMI)";
constexpr std::string_view kKey = "gxp-rank-0";
constexpr size_t kMaxLine = 4096;

// A socket whose other end is still there. A wrapper may have closed it, and its number may be
// another file's by now.
bool is_open(int socket) {
  struct stat status {};
  if (::fstat(socket, &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  char next = 0;
  return ::recv(socket, &next, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

// The value of "key=value" in a line of them; "" if it is not there.
std::string_view field(std::string_view line, std::string_view key) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    if (word.starts_with(key) && word.substr(key.size()).starts_with('='))
      return word.substr(key.size() + 1);
    line.remove_prefix(std::min(word.size() + 1, line.size()));
  }
  return "";
}

class PmiClient {
 public:
  PmiClient(int socket, Deadline deadline) : socket_(socket), deadline_(deadline) {}

  // Sends a request and returns the line that answers it, which must be `answer`.
  std::string ask(const std::string& request, std::string_view answer) {
    send(request);
    return read_answer(request, answer);
  }

  void meet_all() {
    send("cmd=barrier_in");
    if (!wait_ready(socket_, POLLIN, deadline_))
      fail(ErrorKind::kPeer,
           "reach the other ranks at {}: not all answered within {:g} s; has one ended, or do only "
           "some have MASTER_ADDR, MASTER_PORT and a job secret set?",
           kPeer, deadline_.seconds());
    read_answer("cmd=barrier_in", "barrier_out");
  }

 private:
  void send(const std::string& request) {
    const std::string line = request + "\n";
    write_all(socket_, std::as_bytes(std::span(line)), kPeer, deadline_);
  }

  std::string read_answer(const std::string& request, std::string_view answer) {
    std::string got = read_line();
    const std::string_view rc = field(got, "rc");
    if (field(got, "cmd") != answer || (!rc.empty() && rc != "0"))
      fail(ErrorKind::kPeer, "ask {} '{}': it answers '{}'", kPeer,
           request.substr(0, request.find(" value=")), got);
    return got;
  }

  std::string read_line() {
    std::string line;
    for (;;) {
      std::byte next{};
      read_exact(socket_, {&next, 1}, kPeer, deadline_);
      if (char(next) == '\n') return line;
      line += char(next);
      if (line.size() > kMaxLine)
        fail(ErrorKind::kPeer, "read from {}: a line of more than {} B", kPeer, kMaxLine);
    }
  }

  int socket_;
  Deadline deadline_;
};

}  // namespace

std::optional<std::string> pass_by_pmi(int socket, bool is_rank_0, std::string_view text,
                                       Deadline deadline) {
  if (!is_open(socket)) return std::nullopt;
  PmiClient client(socket, deadline);
  client.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init");
  const std::string named = client.ask("cmd=get_my_kvsname", "my_kvsname");
  const std::string key = fmt::format("kvsname={} key={}", field(named, "kvsname"), kKey);
  if (is_rank_0) client.ask(fmt::format("cmd=put {} value={}", key, text), "put_result");
  client.meet_all();
  const std::string got = client.ask("cmd=get " + key, "get_result");
  // Without it Hydra takes the end of the first rank for a crash, and kills the others.
  client.ask("cmd=finalize", "finalize_ack");
  return std::string(field(got, "value"));
}

}  // namespace gxp
