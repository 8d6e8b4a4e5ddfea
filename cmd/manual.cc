#include "cmd/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "lib/base/text/joined.h"
#include "lib/config/print.h"
#include "lib/config/settings.h"

namespace gxp {
namespace {

bool is_visible(const CLI::Option* option) { return !option->get_group().empty(); }

std::vector<const CLI::App*> visible_commands(const CLI::App& app) {
  const auto visible = [](const CLI::App* command) { return !command->get_group().empty(); };
  return app.get_subcommands(visible);
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// "text|csv|json"; "[FILE]" where the value may be left out.
std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return option.get_items_expected_min() == 0 ? '[' + type + ']' : type;
}

// "--format" and its "text|csv|json", or the name of a positional argument.
std::string option_heading(const CLI::Option& option) {
  const std::vector<std::string> names = names_of(option);
  if (names.empty()) return fmt::format("\\fI{}\\fR", to_roff(option.get_name()));
  std::string text;
  for (const std::string& name : names) {
    text += fmt::format("{}\\fB{}\\fR", text.empty() ? "" : ", ", to_roff(name));
  }
  if (takes_value(option)) text += fmt::format(" \\fI{}\\fR", to_roff(type_of(option)));
  return text;
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::set<std::string> names;
  for (const CLI::Option* option : options) names.insert(option->get_name());
  return joined(names, ", ");
}

// "Smallest size (default 32M)", without a full stop.
std::string description_of(const CLI::Option& option) {
  std::vector<std::string> notes;
  if (option.get_required() && !option.get_positional()) notes.emplace_back("required");
  if (!option.get_option_text().empty()) notes.push_back(option.get_option_text());
  if (!option.get_default_str().empty()) notes.push_back("default " + option.get_default_str());
  if (!option.get_needs().empty()) notes.push_back("only with " + names_of(option.get_needs()));
  if (!option.get_excludes().empty())
    notes.push_back("not with " + names_of(option.get_excludes()));
  std::string text = option.get_description();
  if (text.ends_with('.')) text.pop_back();
  return notes.empty() ? text : fmt::format("{} ({})", text, joined(notes, "; "));
}

std::string option_manual(const CLI::Option& option) {
  return fmt::format(".TP\n{}\n{}.\n", option_heading(option), to_roff(description_of(option)));
}

// The first sentence of a description: what --help shows, where the manual has all of it.
std::string first_sentence(const std::string& text) { return text.substr(0, text.find(". ")); }

constexpr size_t kHelpWidth = 100;
constexpr size_t kHelpColumn = 28;  // of the descriptions

// Appends `text` to `line`, broken at spaces and behind '|', with later lines at `indent`.
std::string wrap(std::string line, const std::string& text, size_t indent) {
  std::string wrapped;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" |", begin), text.size() - 1) + 1;
    const std::string word = text.substr(begin, end - begin);
    const size_t width = line.size() + word.size() - size_t(word.back() == ' ');
    if (width > kHelpWidth) {
      wrapped += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
      line = std::string(indent, ' ');
    }
    line += word;
    begin = end;
  }
  return wrapped + line + '\n';
}

// An option's names, and its description in a column of its own where there is room for one.
std::string help_entry(const std::string& names, const std::string& description) {
  const std::string head = "  " + names;
  if (head.size() + 2 <= kHelpColumn)
    return wrap(head + std::string(kHelpColumn - head.size(), ' '), description, kHelpColumn);
  return wrap("", head + "  " + description, kHelpColumn);
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = make_description(app) + make_usage(app, std::move(name));
    text += make_positionals(app);
    for (const std::string& group : app->get_groups()) text += group_help(*app, group);
    text += make_subcommands(app, mode);
    const std::string footer = make_footer(app);
    return footer.empty() ? text : text + '\n' + footer;
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const std::string name =
        is_positional ? option->get_name(true, false) : heading_of(*option, ",");
    std::string text = first_sentence(option->get_description());
    if (text.ends_with('.')) text.pop_back();
    if (!option->get_default_str().empty())
      text += fmt::format(" (default {})", option->get_default_str());
    return help_entry(name, text);
  }

 private:
  static std::string heading_of(const CLI::Option& option, std::string_view between) {
    const std::string names = joined(names_of(option), between);
    return takes_value(option) ? names + ' ' + type_of(option) : names;
  }

  // A group whose options are for few users is a list of names; the manual explains them.
  std::string group_help(const CLI::App& app, const std::string& group) const {
    const auto options = app.get_options([&](const CLI::Option* option) {
      return option->get_group() == group && option->nonpositional();
    });
    if (group.empty() || options.empty()) return "";
    if (!is_listed_briefly(group)) return make_group(group, false, options);
    std::vector<std::string> headings;
    for (const CLI::Option* option : options) headings.push_back(heading_of(*option, ","));
    return fmt::format("\n{}, see the man page:\n", group) + wrap("  ", joined(headings, ", "), 2);
  }
};

std::string setting_names() {
  std::vector<std::string> names;
  for (const Setting& setting : settings()) names.push_back(setting.name() + "=");
  return joined(names, " ");
}

// The words that may follow `option`, or "" for file names.
std::string value_words(const CLI::Option& option) {
  if (option.check_lname("set")) return setting_names();
  std::string type = option.get_type_name();
  if (type.find('|') == std::string::npos) return "";
  std::ranges::replace(type, '|', ' ');
  return type;
}

// What `command` is without an action: the action that has its very options. Null: there is none.
const CLI::App* default_action(const CLI::App& command) {
  for (const CLI::App* action : visible_commands(command)) {
    if (option_names(*action) == option_names(command)) return action;
  }
  return nullptr;
}

// Of a command or, with its command's name before its own, of an action.
std::string command_completion(const CLI::App& command, const std::string& before = "") {
  const std::string name = before + command.get_name();
  const CLI::App* same = default_action(command);
  std::string pattern = before.empty() ? name : '"' + name + '"';
  if (same != nullptr) pattern += fmt::format(" | \"{} {}\"", name, same->get_name());
  std::string text =
      fmt::format("    {})\n      words=\"{}\"\n", pattern, joined(option_names(command), " "));
  if (const std::vector<std::string> actions = command_names(command); !actions.empty()) {
    text += fmt::format("      [[ $command == {} ]] && words=\"{} $words\"\n", name,
                        joined(actions, " "));
  }
  text += "      case $previous in\n";
  for (const CLI::Option* option : command.get_options(is_visible)) {
    const std::vector<std::string> names = names_of(*option);
    if (names.empty() || !takes_value(*option)) continue;
    text +=
        fmt::format("        {}) words=\"{}\" ;;\n", joined(names, " | "), value_words(*option));
  }
  text += "      esac ;;\n";
  for (const CLI::App* action : visible_commands(command)) {
    if (action != same) text += command_completion(*action, name + " ");
  }
  return text;
}

// The patterns of commands with an action: "topo show" | "topo matrix".
std::string action_patterns(const CLI::App& app) {
  std::vector<std::string> patterns;
  for (const CLI::App* command : visible_commands(app)) {
    for (const std::string& action : command_names(*command))
      patterns.push_back(fmt::format("\"{} {}\"", command->get_name(), action));
  }
  return joined(patterns, " | ");
}

constexpr const char* kCompletionHead =
    R"(# bash completion for gxp. Written by `gxp help --write-docs`; do not edit.
_gxp() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} words=""
  [[ $COMP_CWORD -eq 1 ]] && command=""
)";

constexpr const char* kCompletionTail = R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
  return 0
}
complete -o default -F _gxp gxp
)";

}  // namespace

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : visible_commands(app)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> all;
  for (const CLI::Option* option : app.get_options(is_visible)) {
    std::ranges::copy(names_of(*option), std::back_inserter(all));
  }
  return all;
}

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

std::string options_manual(const CLI::App& app) {
  std::string text;
  for (const std::string& group : app.get_groups()) {
    if (group.empty()) continue;
    if (group != "Options") text += fmt::format(".PP\n{}:\n", to_roff(group));
    for (const CLI::Option* option : app.get_options(is_visible)) {
      if (option->get_group() == group) text += option_manual(*option);
    }
  }
  return text;
}

std::string actions_manual(const CLI::App& command) {
  std::string text;
  for (const CLI::App* action : visible_commands(command)) {
    text += fmt::format(".SS gxp {} {}\n{}.\n", to_roff(command.get_name()),
                        to_roff(action->get_name()), to_roff(action->get_description()));
    text += action == default_action(command) ? "Its options are those above.\n"
                                              : options_manual(*action);
  }
  return text;
}

std::string commands_manual(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : visible_commands(app)) {
    text += fmt::format(".TP\n.B gxp {}\n{}.\n", to_roff(command->get_name()),
                        to_roff(command->get_description()));
  }
  return text;
}

std::string exit_codes_manual() {
  std::string text;
  for (const ExitCode& row : kExitCodes) {
    text += fmt::format(".TP\n.B {}\n{}.\n", row.code, to_roff(row.meaning));
  }
  return text;
}

std::string bash_completion(const CLI::App& app) {
  const std::vector<std::string> commands = command_names(app);
  std::string text = kCompletionHead;
  if (const std::string patterns = action_patterns(app); !patterns.empty()) {
    text += fmt::format(
        "  [[ $COMP_CWORD -gt 2 ]] && case \"$command ${{COMP_WORDS[2]}}\" in\n"
        "    {}) command+=\" ${{COMP_WORDS[2]}}\" ;;\n  esac\n",
        patterns);
  }
  text += "  case $command in\n";
  text += fmt::format("    \"\") words=\"{} {}\" ;;\n", joined(commands, " "),
                      joined(option_names(app), " "));
  text += fmt::format("    help) words=\"{}\" ;;\n", joined(commands, " "));
  for (const CLI::App* command : visible_commands(app)) {
    if (command->get_name() != "help") text += command_completion(*command);
  }
  return text + kCompletionTail;
}

}  // namespace gxp
