#include "lib/job/status/status_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lib/base/enum_names.h"
#include "lib/base/error.h"
#include "lib/base/text/read_number.h"
#include "lib/net/socket/socket.h"
#include "lib/net/socket/unix_socket.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kGreeting = "gxp-status 1 ";
constexpr auto kQuestionTime = 100ms;
constexpr auto kAnswerTime = 2s;
constexpr size_t kMostLine = 64;
constexpr size_t kMostAnswer = size_t{64} << 20;  // some 300 B a rank

// Without the line feed. kPeer: it does not come, or is too long.
std::string read_line(int socket, std::string_view peer, Deadline deadline) {
  std::string line;
  for (char byte = 0; line.size() < kMostLine; line += byte) {
    read_exact(socket, std::as_writable_bytes(std::span(&byte, 1)), peer, deadline);
    if (byte == '\n') return line;
  }
  fail(ErrorKind::kPeer, "read from {}: its first line has more than {} bytes", peer, kMostLine);
}

Format read_question(int socket) {
  const std::string line = read_line(socket, "a client", Deadline::after(kQuestionTime));
  const auto format = line.starts_with(kGreeting)
                          ? find_enumerator<Format>(kFormatNames, line.substr(kGreeting.size()))
                          : std::nullopt;
  if (!format) fail(ErrorKind::kPeer, "read from a client: it asks in another way");
  return *format;
}

// Of a process on this host: "stopped", "running"; "" if it cannot be told.
std::string state_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("State:")) continue;
    const char state = line.size() > 7 ? line[7] : ' ';
    return state == 'T' || state == 't' ? "stopped"
           : state == 'D'               ? "waiting for a disk"
                                        : "running";
  }
  return "";
}

}  // namespace

StatusSocket::StatusSocket(std::string directory) : directory_(std::move(directory)) {
  namespace fs = std::filesystem;
  const fs::path path(directory_);
  for (fs::path parent = path; !parent.empty() && !fs::exists(parent);
       parent = parent.parent_path())
    made_.insert(made_.begin(), parent.string());
  fs::create_directories(path);
  if (!connect_unix_file(directory_, kStatusSocketName).valid()) listen();
}

StatusSocket::~StatusSocket() {
  if (owns_file()) ::unlink((directory_ + "/" + kStatusSocketName).c_str());
  for (auto made = made_.rbegin(); made != made_.rend(); ++made) ::rmdir(made->c_str());
}

bool StatusSocket::owns_file() const {
  struct stat status = {};
  return socket_.valid() && ::lstat((directory_ + "/" + kStatusSocketName).c_str(), &status) == 0 &&
         status.st_ino == inode_;
}

void StatusSocket::listen() {
  socket_ = listen_unix_file(directory_, kStatusSocketName);
  struct stat status = {};
  const std::string path = directory_ + "/" + kStatusSocketName;
  check_sys(::lstat(path.c_str(), &status), "look at " + path);
  inode_ = status.st_ino;
}

void StatusSocket::take_over() {
  made_.clear();
  if (!owns_file()) listen();
}

void StatusSocket::serve(const std::function<std::string(Format)>& answer) {
  const Fd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!client.valid() || !is_own_peer(client.get())) return;
  try {
    const std::string text = answer(read_question(client.get()));
    const std::string bytes = fmt::format("{}\n{}", text.size(), text);
    write_all(client.get(), std::as_bytes(std::span(bytes)), "a client",
              Deadline::after(kQuestionTime));
  } catch (const Error&) {
    // The client has gone, or is none: it sees that the connection ends.
  }
}

std::optional<std::string> ask_status(const std::string& directory, Format format) {
  const Fd socket = connect_unix_file(directory, kStatusSocketName);
  if (!socket.valid()) return std::nullopt;
  const pid_t process = peer_process(socket.get());
  if (!is_own_peer(socket.get()))
    fail(ErrorKind::kIo, "ask for the status of the run in {}: it belongs to another user",
         directory);
  try {
    const Deadline deadline = Deadline::after(kAnswerTime);
    const std::string peer = fmt::format("rank 0 (process {})", process);
    const std::string question = fmt::format("{}{}\n", kGreeting, kFormatNames[size_t(format)]);
    write_all(socket.get(), std::as_bytes(std::span(question)), peer, deadline);
    const auto bytes = read_number<size_t>(read_line(socket.get(), peer, deadline));
    if (!bytes || *bytes > kMostAnswer) fail(ErrorKind::kPeer, "{} sent no status", peer);
    std::string text(*bytes, '\0');
    read_exact(socket.get(), std::as_writable_bytes(std::span(text)), peer, deadline);
    return text;
  } catch (const Error& error) {
    const std::string state = state_of(process);
    fail(ErrorKind::kPeer,
         "ask for the status of the run in {}: rank 0 on this host, process {}{}, does not answer "
         "({})",
         directory, process, state.empty() ? "" : ", which is " + state, error.what());
  }
}

}  // namespace gxp
