#include "cmd/other_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "lib/config/other_names.h"
#include "lib/config/settings.h"

namespace gxp {
namespace {

// "; use --set optim.lr=VALUE" for --lr or --learning-rate, where `app` has --set for that setting; ""
// if no setting has this name.
std::string setting_remedy(const CLI::App& app, const std::string& option) {
  const CLI::Option* set = app.get_option_no_throw("--set");
  if (set == nullptr) return "";
  std::string name = setting_for_option(option.substr(std::min(option.size(), size_t{2})));
  for (const Setting& setting : settings()) {
    if (!setting.option.names.empty() && setting.option.names.ends_with(option))
      name = setting.name();
  }
  const bool only_comm = set->get_type_name().starts_with("comm.");
  if (name.empty() || (only_comm && !name.starts_with("comm."))) return "";
  return fmt::format("; use --set {}=VALUE", name);
}

// Names of options as other launchers have them.
struct OtherOption {
  std::string_view theirs, ours;
};
constexpr OtherOption kOtherOptions[] = {{"--nproc-per-node", "--nproc"},
                                         {"--num-gpus", "--nproc"},
                                         {"--num-nodes", "--nnodes"},
                                         {"--num-machines", "--nnodes"},
                                         {"--machine-rank", "--node-rank"}};

// Options of theirs that are answered: with an option that the command has, and what it takes.
struct AnsweredOption {
  std::string_view theirs, ours, remark;
};
constexpr AnsweredOption kAnsweredOptions[] = {
    {"--num-processes", "--nproc", "the ranks of one host"},
    {"--gpus", "--nproc", "the ranks of one host"},
    {"--ngpus", "--nproc", "the ranks of one host"},
    {"--n-gpus", "--nproc", "the ranks of one host"},
    {"--world-size", "--nproc", "the ranks of one host"},
    {"--local-rank", "--nproc", "which starts the ranks of one host"},
    {"--master-addr", "--master", "HOST:PORT"},
    {"--master-port", "--master", "HOST:PORT"},
    {"--main-process-ip", "--master", "HOST:PORT"},
    {"--main-process-port", "--master", "HOST:PORT"},
    {"--rdzv-endpoint", "--master", "HOST:PORT"},
    {"--rdzv-backend", "--master", "HOST:PORT"},
    {"--rdzv-id", "--master", "HOST:PORT"},
    {"--hostfile", "--nnodes", "on every host, with --node-rank and --master"},
    {"--standalone", "--nnodes", "which is 1 unless it is given"},
    {"--resume-from-checkpoint", "--resume", "which goes on from the newest checkpoint"},
    {"--load", "--resume", "which goes on from the newest checkpoint"},
    {"--deepspeed", "--import", "FILE"},
    {"--deepspeed-config", "--import", "FILE"},
    {"--config-file", "--import", "FILE"},
    {"--global-batch-size", "--set", "train.global_batch"},
    {"--train-batch-size", "--set", "train.global_batch"},
    {"--num-train-epochs", "--set", "train.steps, which counts steps"}};

// "; use --master HOST:PORT"; "" if it is none of these, or `app` lacks the option.
std::string answer_to(const CLI::App& app, const std::string& option) {
  const auto* const row = std::ranges::find(kAnsweredOptions, option, &AnsweredOption::theirs);
  if (row == std::end(kAnsweredOptions) ||
      app.get_option_no_throw(std::string(row->ours)) == nullptr)
    return "";
  const bool is_value = row->remark == "FILE" || row->remark == "HOST:PORT";
  return fmt::format("; use {}{}{}", row->ours, is_value ? " " : ": ", row->remark);
}

// Whether a command spells an option of its own so.
bool is_own_option(const CLI::App& app, const std::string& name) {
  return std::ranges::any_of(app.get_subcommands({}), [&](const CLI::App* command) {
    return command->get_option_no_throw(name) != nullptr;
  });
}

}  // namespace

std::string to_own_option(const CLI::App& app, const std::string& argument) {
  if (!argument.starts_with("--")) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  std::string name = argument.substr(0, end);
  if (is_own_option(app, name)) return argument;
  std::ranges::replace(name, '_', '-');
  const auto* const other = std::ranges::find(kOtherOptions, name, &OtherOption::theirs);
  if (other != std::end(kOtherOptions)) name = other->ours;
  return name + argument.substr(end);
}

std::string remedy_for_option(const CLI::App& app, const std::string& option) {
  const std::string remedy = setting_remedy(app, option);
  return remedy.empty() ? answer_to(app, option) : remedy;
}

}  // namespace gxp
