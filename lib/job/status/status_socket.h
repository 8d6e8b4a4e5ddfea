// The question and the answer of `gxp train --status`, over a Unix socket in the run's directory.
// A client sends one line, "gxp-status 1 FORMAT"; the server answers with a line, the number of bytes
// that follow, and the text as it is to be printed; then it closes the connection.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/fd.h"
#include "lib/report/report.h"

namespace gxp {

// The file of the socket in a run's directory.
inline constexpr const char* kStatusSocketName = ".gxp.status";

// The server's side: the socket, which belongs to one run at a time. Threads: one.
class StatusSocket {
 public:
  // Makes the directory if it is missing, for as long as this lives unless the run takes it over. Does
  // not take the socket of a run that lives.
  explicit StatusSocket(std::string directory);
  ~StatusSocket();  // removes the file
  StatusSocket(const StatusSocket&) = delete;
  StatusSocket& operator=(const StatusSocket&) = delete;

  // The run holds the directory's lock now, so another's socket is left over. kIo.
  void take_over();
  // Readable when a client has come; -1: there is no socket.
  [[nodiscard]] int fd() const { return socket_.get(); }
  // The client gets the text of `answer`. One of another user, or one that says nothing within 100 ms,
  // gets none. Does not wait for a client.
  void serve(const std::function<std::string(Format)>& answer);

 private:
  [[nodiscard]] bool owns_file() const;
  void listen();

  const std::string directory_;
  std::vector<std::string> made_;  // directories, the outermost first
  Fd socket_;
  unsigned long inode_ = 0;  // of the socket's file
};

// The client's side: the text, by the run in `directory`; nothing where none listens on this host.
// Errors: kIo: the directory or the socket may not be used; kPeer: rank 0 does not answer within 2 s,
// and is named.
std::optional<std::string> ask_status(const std::string& directory, Format format);

}  // namespace gxp
