#include <iostream>

#include "cmd/command_line.h"

int main(int argc, char** argv) {
  return gxp::run_command_line({argv + 1, argv + argc}, gxp::kCommands, std::cout, std::cerr);
}
