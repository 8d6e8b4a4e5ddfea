// A subcommand of gxp. It declares its options, then runs; the work itself is in lib/.
//
// One more subcommand is one file cmd/NAME.cc with its `define`, one row in commands.cc and one
// line in CMakeLists.txt; then `cmake --build BUILD --target docs` writes its man page and
// completion.
#pragma once

#include <functional>
#include <span>

namespace CLI {
class App;
}

namespace gxp {

struct Command {
  const char* name;
  const char* summary;  // one line, for the list of commands
  // Adds the options to `app`; returns the action, which is called at most once, after parsing, and
  // gives the exit code. The action keeps alive what the options write to.
  std::function<int()> (*define)(CLI::App& app);
};

// All subcommands but `help`, in the order in which help lists them.
extern const std::span<const Command> kCommands;

}  // namespace gxp
