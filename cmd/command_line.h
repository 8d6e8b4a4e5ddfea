// gxp's command line: global options, `help`, and the subcommands of a table.
//
//   Errors   one line on stderr, "gxp: error: ...", with a near match for a misspelt command or
//            option; exit code as in exit_codes.h. No exception leaves run_command_line().
//   Cost     nothing is opened or probed before a command's action runs.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cmd/command.h"

namespace gxp {

// The arguments of `gxp help`.
struct HelpOptions {
  std::string topic;           // a command; "": gxp itself
  std::string docs_directory;  // whose man/ and completions/ are to be updated; not in any help
};

// The parser with everything declared, and what each subcommand does.
struct CommandLine {
  std::unique_ptr<CLI::App> app;
  std::map<const CLI::App*, std::function<int()>> actions;  // of all subcommands but `help`
  std::unique_ptr<HelpOptions> help;
};

CommandLine make_command_line(std::span<const Command> commands);

// `arguments` without the program's name. Help, version and `help` go to `out`, errors to `err`;
// actions write to stdout themselves. Returns the exit code.
int run_command_line(std::vector<std::string> arguments, std::span<const Command> commands,
                     std::ostream& out, std::ostream& err);

}  // namespace gxp
