#include <csignal>
#include <iostream>

#include "cmd/command_line.h"
#include "lib/base/standard_streams.h"

int main(int argc, char** argv) {
  gxp::open_standard_streams();
  // A file that would exceed the limit of the shell is an error of write() like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  return gxp::run_command_line({argv + 1, argv + argc}, gxp::kCommands, std::cout, std::cerr);
}
