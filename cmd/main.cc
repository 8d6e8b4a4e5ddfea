#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "cmd/command_line.h"

namespace {

// Opens /dev/null on those of 0, 1 and 2 that are closed ("2>&-"), so that no file or socket gets
// their numbers, and with it the log or the results. What is then read is empty and what is logged
// is lost; to write results to a closed stdout stays an error.
void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest number that is free, which is this one.
    const int opened = ::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened != fd) ::_exit(4);  // kIo; there is nowhere to say why
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  // A file that would exceed the limit of the shell is an error of write() like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  return gxp::run_command_line({argv + 1, argv + argc}, gxp::kCommands, std::cout, std::cerr);
}
