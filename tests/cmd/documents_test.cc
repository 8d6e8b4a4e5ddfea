#include "cmd/documents.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cmd/command_line.h"
#include "cmd/manual.h"
#include "lib/base/error.h"
#include "lib/config/settings.h"
#include "tests/catch.h"
#include "tests/cmd/sample_commands.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What bash offers after `words`, the last of which is being typed; one a line.
std::string completions(const std::string& words,
                        std::span<const Command> commands = kSampleCommands) {
  const CommandLine line = make_command_line(commands);
  const TemporaryDirectory directory;
  std::ofstream(directory / "gxp.bash") << bash_completion(*line.app);
  const std::string command = "bash -c 'complete() { :; }; compopt() { :; }; . " +
                              directory / "gxp.bash" + "; COMP_WORDS=(" + words +
                              "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _gxp; "
                              "echo \"${COMPREPLY[*]}\"'";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), pipe));
  CHECK(pclose(pipe) == 0);
  return text.substr(0, text.find('\n'));
}

}  // namespace

TEST_CASE("man pages and completions are up to date; else build the target docs", "[cmd]") {
  for (const Document& document : documents(kCommands)) {
    CAPTURE(document.path);
    const std::string text = read_text(fs::path(GXP_SOURCE_DIR) / document.path);
    REQUIRE_FALSE(text.empty());
    CHECK(refresh(document, text) == text);
  }
}

TEST_CASE("a refresh changes what is between the markers and nothing else", "[cmd]") {
  const Document page{"man/x.1", "", {{"options", "new\n"}, {"exit codes", "0\n"}}};
  const std::string before = "hand\n.\\\" begin options (generated)\nold\n";
  const std::string after =
      ".\\\" end options (generated)\n.\\\" begin exit codes (generated)\n"
      ".\\\" end exit codes (generated)\nhand\n";
  const std::string fresh = refresh(page, before + after);
  CHECK(fresh ==
        "hand\n.\\\" begin options (generated)\nnew\n.\\\" end options (generated)\n"
        ".\\\" begin exit codes (generated)\n0\n.\\\" end exit codes (generated)\nhand\n");
  CHECK(refresh(page, fresh) == fresh);
  CHECK_THROWS_WITH(refresh(page, before),
                    "update man/x.1: the markers of part 'options' are missing");
}

TEST_CASE("a new command needs nothing but a run of the generator", "[cmd]") {
  const TemporaryDirectory directory;
  write_documents(directory.path(), kSampleCommands);
  for (const Document& document : documents(kSampleCommands)) {
    const std::string text = read_text(directory / std::string(document.path));
    CAPTURE(document.path);
    CHECK_FALSE(text.empty());
    CHECK(refresh(document, text) == text);
  }
  CHECK(fs::exists(directory / "man/gxp-brew.1"));
}

TEST_CASE("documents in a directory that takes no files are an error", "[cmd]") {
  CHECK_THROWS_AS(write_documents("/dev/null", kSampleCommands), Error);
}

TEST_CASE("a man page has each option with type, default and meaning", "[cmd]") {
  const CommandLine line = make_command_line(kSampleCommands);
  const std::string manual = options_manual(*line.app->get_subcommand("brew"));
  CHECK(manual.find(".TP\n\\fIkind\\fR\nWhat to brew.\n") != std::string::npos);
  CHECK(
      manual.find(
          ".TP\n\\fB\\-s\\fR, \\fB\\-\\-strength\\fR \\fIINT\\fR\nSpoons per cup (default 2).\n") !=
      std::string::npos);
  CHECK(manual.find("\\fB\\-\\-format\\fR \\fItext|csv|json\\fR\n") != std::string::npos);
  CHECK(manual.find("secret") == std::string::npos);
}

TEST_CASE("bash completes commands, options, values and settings", "[cmd]") {
  const auto [words, offered] = GENERATE(
      table<std::string, std::string>({{"gxp b", "brew"},
                                       {"gxp --v", "--version"},
                                       {"gxp help f", "fail"},
                                       {"gxp brew --f", "--format"},
                                       {"gxp brew -", "-h --help -s --strength --format --set"},
                                       {"gxp brew --format c", "csv"},
                                       {"gxp brew --set optim.be", "optim.beta1= optim.beta2="},
                                       {"gxp brew --strength 1", ""},
                                       {"gxp brew te", ""}}));
  CAPTURE(words);
  CHECK(completions(words) == offered);
}

TEST_CASE("an action that its command is by itself is written once, and completed as both",
          "[cmd]") {
  const auto [words, offered] =
      GENERATE(table<std::string, std::string>({{"gxp topo l", "lint"},
                                                {"gxp topo show l", ""},
                                                {"gxp topo --fr", "--from"},
                                                {"gxp topo show --fr", "--from"},
                                                {"gxp topo show --format nccl", "nccl-xml"},
                                                {"gxp topo plan --format host", "hostfile"}}));
  CAPTURE(words);
  CHECK(completions(words, kCommands) == offered);
  const CommandLine line = make_command_line(kCommands);
  const std::string manual = actions_manual(*line.app->get_subcommand("topo"));
  CHECK(manual.find("their links.\nIts options are those above.\n.SS") != std::string::npos);
  CHECK(manual.find("Its options") == manual.rfind("Its options"));
}

}  // namespace gxp
