#include "cmd/command_line.h"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "cmd/exit_codes.h"
#include "cmd/manual.h"
#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/cmd/sample_commands.h"

namespace gxp {
namespace {

struct LineOutcome {
  int code;
  std::string out;
  std::string err;
};

LineOutcome run_with(std::span<const Command> commands, const std::string& line) {
  std::istringstream words(line);
  const std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
  std::ostringstream out, err;
  const int code = run_command_line(arguments, commands, out, err);
  return {code, out.str(), err.str()};
}
LineOutcome run(const std::string& line) { return run_with(kSampleCommands, line); }
LineOutcome run_of_gxp(const std::string& line) { return run_with(kCommands, line); }

}  // namespace

TEST_CASE("a command's action runs with its options and gives the exit code", "[cmd]") {
  CHECK(run("brew tea").code == 3);
  CHECK(run("brew --format json espresso").code == 8 + 100 * int(Format::kJson));
  CHECK(run("brew tea --set a.b=1 --set c.d=2").code == 3 + 2000);
}

TEST_CASE("help and version go to stdout and succeed", "[cmd]") {
  const auto [arguments, text] =
      GENERATE(table<std::string, std::string>({{"--help", "  brew "},
                                                {"-h", "Usage: gxp "},
                                                {"help", "  brew "},
                                                {"help", "  help "},
                                                {"help brew", "Usage: gxp brew [OPTIONS] kind"},
                                                {"brew --help", "Usage: gxp brew [OPTIONS] kind"},
                                                {"help brew", "--strength INT  "},
                                                {"help brew", "Spoons per cup (default 2)\n"},
                                                {"help help", "Usage: gxp help"},
                                                {"--version", "gxp 0."}}));
  const LineOutcome outcome = run(arguments);
  CAPTURE(arguments, outcome.out);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find(text) != std::string::npos);
}

TEST_CASE("a wrong command line is one line on stderr and exit code 2", "[cmd]") {
  const auto [arguments, message] = GENERATE(table<std::string, std::string>(
      {{"", "no command given; 'gxp help' lists them"},
       {"brwe tea", "unknown command 'brwe'; did you mean 'brew'?"},
       {"xyzzy", "unknown command 'xyzzy'; 'gxp help' lists them"},
       {"help brwe", "unknown command 'brwe'; did you mean 'brew'?"},
       {"--verison", "unknown option '--verison'; did you mean '--version'?"},
       {"--foo brew tea", "unknown option '--foo'"},
       {"brew tea --fromat=csv", "unknown option '--fromat'; did you mean '--format'?"},
       {"brew tea milk", "unexpected argument 'milk'"},
       {"brew", "kind is required"},
       {"brew tea --strength much", "Could not convert: --strength = much"},
       {"brew tea --format jsn",
        "--format: must be one of: text, csv, json; it is 'jsn'; did you mean 'json'?"}}));
  const LineOutcome outcome = run(arguments);
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err == "gxp: error: " + message + "\n");
}

TEST_CASE("--help of every command and action fits a screen of 100 columns and 50 lines", "[cmd]") {
  std::vector<std::string> names = {""};
  const CommandLine line = make_command_line(kCommands);
  for (const CLI::App* command : line.app->get_subcommands({})) {
    names.push_back(command->get_name());
    for (const CLI::App* action : command->get_subcommands({}))
      names.push_back(command->get_name() + " " + action->get_name());
  }
  for (const std::string& name : names) {
    CAPTURE(name);
    std::istringstream help(run_of_gxp(name + " --help").out);
    int rows = 0;
    for (std::string row; std::getline(help, row); ++rows)
      CHECK((row.size() <= 100 ? "" : row) == "");
    CHECK(rows > 5);
    CHECK(rows <= 50);
  }
}

TEST_CASE("an option that a setting replaces is an error that names the setting", "[cmd]") {
  const auto [arguments, message] = GENERATE(table<std::string, std::string>(
      {{"topo --transport tcp", "unknown option '--transport'; use --set comm.transport=VALUE"},
       {"allreduce-test --streams 2", "unknown option '--streams'; use --set comm.streams=VALUE"},
       {"allreduce-test --verbs-gid-index=3",
        "unknown option '--verbs-gid-index'; use --set comm.verbs_gid_index=VALUE"},
       {"train run.toml --timeout 5", "unknown option '--timeout'; use --set comm.timeout_s=VALUE"},
       {"topo doctor --channels 2", "unknown option '--channels'"},
       {"allreduce-test --explain --set train.steps=3",
        "--set train.steps=3: this command takes settings of [comm] only"}}));
  const LineOutcome outcome = run_of_gxp(arguments);
  CHECK(outcome.code == 2);
  CHECK(outcome.err == "gxp: error: " + message + "\n");
}

TEST_CASE("--help shows a description's first sentence, the manual all of it", "[cmd]") {
  const std::string help = run_of_gxp("allreduce-test --help").out;
  CHECK(help.find("  Element type (default float)\n") != std::string::npos);
  CHECK(help.find("own names") == std::string::npos);
  const CommandLine line = make_command_line(kCommands);
  const std::string manual = options_manual(*line.app->get_subcommand("allreduce-test"));
  CHECK(manual.find(
            "Element type. gxp's own names, such as f32 and bf16, work too (default float).") !=
        std::string::npos);
}

TEST_CASE("whatever an action throws becomes a message and an exit code", "[cmd]") {
  const auto [what, code, message] = GENERATE(
      table<std::string, int, std::string>({{"peer", 5, "brew: rank 3 is gone"},
                                            {"memory", 4,
                                             "allocate memory: none is left, or the address space "
                                             "limit (ulimit -v) is reached"},
                                            {"bug", 70, "boiled over; this is a bug in gxp"}}));
  const LineOutcome outcome = run("fail " + what);
  CHECK(outcome.code == code);
  CHECK(outcome.err == "gxp: error: " + message + "\n");
}

TEST_CASE("every way to end is in the table of exit codes", "[cmd]") {
  const auto listed = [](int code) {
    return std::ranges::count(kExitCodes, code, &ExitCode::code) == 1;
  };
  CHECK(listed(kExitOk));
  for (int kind = 0; kind <= int(ErrorKind::kInternal); ++kind) {
    CHECK(listed(exit_code(static_cast<ErrorKind>(kind))));
  }
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) CHECK(listed(exit_code_after_signal(signal)));
  const std::string help = run("--help").out;
  for (const ExitCode& row : kExitCodes) CHECK(help.find(row.meaning) != std::string::npos);
}

TEST_CASE("the commands of gxp have names, summaries and options of their own", "[cmd]") {
  const CommandLine line = make_command_line(kCommands);
  for (const Command& command : kCommands) {
    const CLI::App* app = line.app->get_subcommand(command.name);
    CAPTURE(command.name);
    CHECK(app->get_description() == command.summary);
    CHECK(line.actions.at(app) != nullptr);
  }
}

}  // namespace gxp
