#include "cmd/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "cmd/command_line.h"
#include "cmd/manual.h"
#include "cmd/result_file.h"
#include "lib/base/error.h"
#include "lib/base/text_file.h"
#include "lib/config/print.h"

namespace gxp {
namespace {

std::string begin_of(const std::string& part) {
  return fmt::format(".\\\" begin {} (generated)\n", part);
}
std::string end_of(const std::string& part) {
  return fmt::format(".\\\" end {} (generated)\n", part);
}
std::string empty_part(const std::string& part) { return begin_of(part) + end_of(part); }

// The head of a page: "gxp-train", section 1.
std::string page_head(const std::string& name, int section, const std::string& summary) {
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".TH {} {} \"\" gxp\n.SH NAME\n{} \\- {}\n", to_roff(title), section,
                     to_roff(name), to_roff(summary));
}

Document command_page(const CLI::App& command) {
  const std::string page = "gxp-" + command.get_name();
  const std::string summary = command.get_description();
  std::string own;
  std::vector<std::pair<std::string, std::string>> parts = {
      {"options", options_manual(command) + actions_manual(command)},
      {"exit codes", exit_codes_manual()}};
  if (command.get_name() == "topo") {
    own = empty_part("sources");
    parts.emplace_back("sources", topology_sources_manual());
  }
  return {"man/" + page + ".1",
          page_head(page, 1, summary) +
              fmt::format(".SH SYNOPSIS\n.B gxp {}\n[\\fIoption\\fR]... [\\fIargument\\fR]...\n",
                          to_roff(command.get_name())) +
              fmt::format(".SH DESCRIPTION\n{}.\n", to_roff(summary)) + own + ".SH OPTIONS\n" +
              empty_part("options") + ".SH EXIT STATUS\n" + empty_part("exit codes") +
              ".SH SEE ALSO\n.BR gxp (1),\n.BR gxp.toml (5)\n",
          parts};
}

Document main_page(const CLI::App& app) {
  return {"man/gxp.1",
          page_head("gxp", 1, "train language models on one rank or many") + ".SH COMMANDS\n" +
              empty_part("commands") + ".SH OPTIONS\n" + empty_part("options") +
              ".SH EXIT STATUS\n" + empty_part("exit codes"),
          {{"commands", commands_manual(app)},
           {"options", options_manual(app)},
           {"exit codes", exit_codes_manual()}}};
}

Document settings_page() {
  return {
      "man/gxp.toml.5",
      page_head("gxp.toml", 5, "settings of a gxp run") + ".SH SETTINGS\n" + empty_part("settings"),
      {{"settings", settings_manual()}}};
}

}  // namespace

std::vector<Document> documents(std::span<const Command> commands) {
  const CommandLine line = make_command_line(commands);
  std::vector<Document> all = {main_page(*line.app), settings_page()};
  for (const Command& command : commands) {
    all.push_back(command_page(*line.app->get_subcommand(command.name)));
  }
  all.push_back({"completions/gxp.bash", bash_completion(*line.app), {}});
  return all;
}

std::string refresh(const Document& document, const std::string& text) {
  if (document.parts.empty()) return document.first;
  std::string fresh = text;
  for (const auto& [name, generated] : document.parts) {
    const size_t begin = fresh.find(begin_of(name));
    const size_t end = fresh.find(end_of(name));
    if (begin == std::string::npos || end == std::string::npos || end < begin) {
      fail(ErrorKind::kCorrupt, "update {}: the markers of part '{}' are missing", document.path,
           name);
    }
    const size_t start = begin + begin_of(name).size();
    fresh.replace(start, end - start, generated);
  }
  return fresh;
}

void write_documents(const std::string& directory, std::span<const Command> commands) {
  constexpr size_t kMaxBytes = size_t{4} << 20;
  for (const Document& document : documents(commands)) {
    const std::filesystem::path path = std::filesystem::path(directory) / document.path;
    std::error_code ignored;  // write_file() reports what then goes wrong
    std::filesystem::create_directories(path.parent_path(), ignored);
    const bool exists = std::filesystem::exists(path, ignored);
    write_file(path, refresh(document, exists ? read_text_file(path, kMaxBytes) : document.first));
  }
}

}  // namespace gxp
