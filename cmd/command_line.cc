#include "cmd/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <ostream>

#include "cmd/documents.h"
#include "cmd/exit_codes.h"
#include "cmd/manual.h"
#include "cmd/other_options.h"
#include "lib/base/error.h"
#include "lib/base/text/near_match.h"

namespace gxp {
namespace {

void define_help(CLI::App& app, HelpOptions& options) {
  CLI::App* help = app.add_subcommand("help", "Show the help of gxp or of one command");
  help->add_option("COMMAND", options.topic, "The command");
  help->add_option("--write-docs", options.docs_directory, "Update man/ and completions/ there")
      ->group("");
}

std::string explain_unknown_command(const CLI::App& app, const std::string& name) {
  const std::string near = did_you_mean(name, command_names(app));
  return fmt::format("unknown command '{}'{}", name,
                     near.empty() ? "; 'gxp help' lists them" : near);
}

const CLI::App& find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return *command;
  }
  throw Error(ErrorKind::kUsage, explain_unknown_command(app, name));
}

int run_help(CommandLine& line, std::span<const Command> commands, std::ostream& out) {
  const HelpOptions& options = *line.help;
  line.app->clear();  // else the help of gxp is that of the chosen command, which is `help`
  const CLI::App* topic = line.app.get();
  if (!options.topic.empty()) topic = &find_command(*line.app, options.topic);
  if (!options.docs_directory.empty()) {
    write_documents(options.docs_directory, commands);
  } else {
    out << topic->help(options.topic.empty() ? "" : line.app->get_name());
  }
  return kExitOk;
}

std::string exit_code_help() {
  std::string text = "Exit codes:\n";
  for (const ExitCode& row : kExitCodes) text += fmt::format("  {:<4}{}\n", row.code, row.meaning);
  return text;
}

// The message for the first argument that nothing has taken.
std::string explain_leftover(const CLI::App& app) {
  const CLI::App* place = &app;
  while (place->remaining().empty() && !place->get_subcommands().empty()) {
    place = place->get_subcommands().front();
  }
  const std::vector<std::string> leftover = place->remaining();
  if (leftover.empty()) return "unexpected argument";
  const std::string word = leftover[0].substr(0, leftover[0].find('='));
  if (word.starts_with('-')) {
    const std::string remedy = remedy_for_option(*place, word);
    return fmt::format("unknown option '{}'{}", word,
                       remedy.empty() ? did_you_mean(word, option_names(*place)) : remedy);
  }
  if (place != &app)
    return fmt::format("unexpected argument '{}'{}", word,
                       did_you_mean(word, command_names(*place)));
  return explain_unknown_command(app, word);
}

void parse(CLI::App& app, std::vector<std::string> arguments) {
  const auto options_end = std::ranges::find(arguments, "--");
  std::transform(arguments.begin(), options_end, arguments.begin(),
                 [&](const std::string& argument) { return to_own_option(app, argument); });
  std::ranges::reverse(arguments);  // the order that CLI11 takes
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Success&) {
    throw;  // --help, --version
  } catch (const CLI::ExtrasError&) {
    throw Error(ErrorKind::kUsage, explain_leftover(app));
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    std::ranges::replace(message, '\n', ' ');
    throw Error(ErrorKind::kUsage, message);
  }
}

int run_action(std::vector<std::string> arguments, std::span<const Command> commands,
               std::ostream& out) {
  CommandLine line = make_command_line(commands);
  try {
    parse(*line.app, std::move(arguments));
  } catch (const CLI::CallForVersion& version) {
    out << version.what() << '\n';
    return kExitOk;
  } catch (const CLI::Success&) {
    out << line.app->help();
    return kExitOk;
  }
  const std::vector<CLI::App*> chosen = line.app->get_subcommands();
  if (chosen.empty()) fail(ErrorKind::kUsage, "no command given; 'gxp help' lists them");
  const auto action = line.actions.find(chosen[0]);
  return action == line.actions.end() ? run_help(line, commands, out) : action->second();
}

}  // namespace

CommandLine make_command_line(std::span<const Command> commands) {
  CommandLine line;
  line.help = std::make_unique<HelpOptions>();
  line.app =
      std::make_unique<CLI::App>("Trains decoder language models on one rank or many.", "gxp");
  line.app->formatter(help_formatter());
  line.app->set_help_flag("-h,--help", "Print this help and exit");
  line.app->set_version_flag("--version", "gxp " GXP_VERSION, "Print the version and exit");
  line.app->require_subcommand(0, 1);
  for (const Command& command : commands) {
    CLI::App* app = line.app->add_subcommand(command.name, command.summary);
    line.actions[app] = command.define(*app);
  }
  define_help(*line.app, *line.help);
  line.app->footer(exit_code_help());  // last, since subcommands would inherit it
  return line;
}

int run_command_line(std::vector<std::string> arguments, std::span<const Command> commands,
                     std::ostream& out, std::ostream& err) {
  try {
    const int code = run_action(std::move(arguments), commands, out);
    if (!out.flush()) fail(ErrorKind::kIo, "write to stdout: the OS refused it");
    return code;
  } catch (const std::exception&) {
    const Ending ending = ending_of(std::current_exception());
    err << ending.line;
    return ending.code;
  }
}

}  // namespace gxp
