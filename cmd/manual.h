// The texts of the declared options, for --help, man pages, completion and near
// matches. An option's option_text() is its range in words, its default_str() the default; both are
// shown after the description. Options and commands of group "" are internal and left out
// everywhere.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

namespace gxp {

std::vector<std::string> command_names(const CLI::App& app);
std::vector<std::string> option_names(const CLI::App& app);  // "-h", "--help", ...

// --help.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// roff: arguments and options of one command, each with type and description, by group.
std::string options_manual(const CLI::App& app);
// roff: a subsection for each action of a command, with its options, unless they are the command's
// own; "" if it has none.
std::string actions_manual(const CLI::App& command);
// roff: the commands of `app` with their summaries.
std::string commands_manual(const CLI::App& app);
// roff: what `gxp topo --from` takes: sources, names of machines and shapes; "" without tools.
std::string topology_sources_manual();
// roff: the table of exit_codes.h.
std::string exit_codes_manual();

// A bash script that completes commands and options; values where an option's type reads "a|b|c"
// and for --set; file names elsewhere.
std::string bash_completion(const CLI::App& app);

}  // namespace gxp
