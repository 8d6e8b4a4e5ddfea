#include "cmd/options.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <array>
#include <climits>
#include <cmath>

#include "cmd/choice_option.h"
#include "cmd/gpu_count.h"
#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/read_number.h"
#include "lib/collective/tune/selection.h"
#include "lib/config/settings.h"
#include "lib/job/join.h"
#include "lib/replay/hardware.h"

namespace gxp {
namespace {

std::string type_name_of(const Setting& setting) {
  if (!setting.option.value.empty()) return std::string(setting.option.value);
  if (!setting.check.words.empty()) return joined(setting.check.words, "|");
  return setting.type == SettingType::kBytes ? "SIZE" : "N";
}

// The names of algorithms come from their table, which lib/config does not know.
std::string doc_of(const Setting& setting) {
  std::string doc(setting.doc);
  if (setting.name() == "comm.algorithm")
    doc += fmt::format(" One of: {}.", joined(algorithm_choices(), ", "));
  return doc;
}

std::string default_of(const Setting& setting) {
  return std::visit([](const auto& value) { return fmt::format("{}", value); },
                    setting.get(RunConfig()));
}

// "from 1 to 8"; INT_MAX is no limit.
template <class Number>
std::string range_text(Number low, Number high) {
  return high == Number(INT_MAX) ? fmt::format("at least {}", low)
                                 : fmt::format("from {} to {}", low, high);
}

// Numbers, and "gpu": one rank for each GPU.
void add_nproc_option(CLI::App& app, int& nproc) {
  constexpr int kMost = 4096;
  const std::string range = range_text(1, kMost) + ", or gpu: one for each GPU that gxp sees";
  const auto read = [&nproc, range](const std::string& text) {
    const std::optional<int> number = read_number<int>(text);
    if (text != "gpu" && (!number || *number < 1 || *number > kMost))
      throw CLI::ValidationError("--nproc", fmt::format("must be {}, is '{}'", range, text));
    nproc = number ? *number : count_gpus();
  };
  app.add_option_function<std::string>("--nproc", read, "Ranks to start on this host")
      ->type_name("N|gpu")
      ->option_text(range);
}

// "32M", as add_size_option() reads it.
std::string short_size(size_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"", "K", "M", "G"};
  size_t unit = 0;
  for (; bytes > 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

}  // namespace

void add_format_option(CLI::App& app, Format& format) {
  add_choice_option(app, "--format", format, kFormatNames, "Output format");
}

void add_under(CLI::App& app, const char* heading, const std::function<void()>& add) {
  const std::string before = app.option_defaults()->get_group();
  app.option_defaults()->group(heading);
  add();
  app.option_defaults()->group(before);
}

namespace {

// "4", or "2:4".
void read_nnodes(const std::string& text, LaunchRequest& request) {
  constexpr int kMost = 65536;
  const size_t colon = text.find(':');
  const auto least = read_number<int>(text.substr(0, colon));
  const auto most = colon == std::string::npos ? least : read_number<int>(text.substr(colon + 1));
  if (!least || !most || *least < 1 || *most < *least || *most > kMost)
    throw CLI::ValidationError(
        "--nnodes",
        fmt::format("must be a number from 1 to {}, or two as in 2:4, is '{}'", kMost, text));
  request.given_nnodes = *most;
  if (colon != std::string::npos) request.min_nnodes = *least;
}

}  // namespace

void add_launch_options(CLI::App& app, LaunchRequest& request) {
  add_nproc_option(app, request.nproc);
  add_under(app, kStartingRanks, [&] {
    app.add_option_function<std::string>(
           "--nnodes", [&request](const std::string& text) { read_nnodes(text, request); },
           "Number of hosts that run this command, or MIN:MAX: with --max-restarts, a job goes on "
           "without a host that is lost and takes in one that comes. A launcher that has started "
           "one process on each "
           "host (srun, a PyTorchJob) sets it, --node-rank and --master")
        ->type_name("N|MIN:MAX")
        ->option_text("from 1 to 65536")
        ->default_str("1");
    add_number_option(app, "--node-rank", request.given_node_rank, 0, INT_MAX,
                      "Number of this host, from 0; in a Pod of an Indexed Job, the Pod's index")
        ->default_str("0");
    app.add_option("--master", request.master, "Address of rank 0, which is on host 0")
        ->type_name("HOST:PORT");
    app.add_flag("--no-bind", request.no_bind,
                 "Let the OS move ranks between CPUs. By default each rank is bound to its share "
                 "of the CPUs, unless ranks outnumber the CPUs and cannot share them evenly");
    // A clock cannot count 1e10 s.
    add_number_option(app, "--join-timeout", request.join_timeout_s, 0.001, 1e6,
                      "Seconds to wait until all ranks have joined")
        ->type_name("SECONDS");
  });
}

void add_comm_options(CLI::App& app, std::vector<std::string>& sets) {
  add_under(app, kCommSettings, [&] {
    for (const Setting& setting : settings()) {
      if (setting.section != "comm" || setting.option.names.empty()) continue;
      const auto add = [&sets, name = setting.name()](const std::string& value) {
        sets.push_back(name + "=" + value);
      };
      app.add_option_function<std::string>(std::string(setting.option.names), add, doc_of(setting))
          ->type_name(type_name_of(setting))
          ->default_str(default_of(setting));
    }
  });
}

bool is_listed_briefly(std::string_view heading) {
  return heading == kStartingRanks || heading == kCommSettings || heading == kSimulating;
}

template <class Number>
CLI::Option* add_number_option(CLI::App& app, const char* names, Number& number,
                               std::type_identity_t<Number> low, std::type_identity_t<Number> high,
                               const std::string& description) {
  const std::string range = range_text(low, high);
  const auto fits = [low, high](Number value) { return value >= low && value <= high; };
  // Not CLI::Range, which nan passes.
  const auto check = [fits, range](const std::string& text) {
    const std::optional<Number> value = read_number<Number>(text);
    return value && fits(*value) ? "" : fmt::format("must be {}, is '{}'", range, text);
  };
  CLI::Option* option = app.add_option(names, number, description)->type_name("N")->check(check);
  if (fits(number)) option->default_str(fmt::format("{}", number));
  return option->option_text(range);
}
template CLI::Option* add_number_option(CLI::App&, const char*, int&, int, int, const std::string&);
template CLI::Option* add_number_option(CLI::App&, const char*, uint64_t&, uint64_t, uint64_t,
                                        const std::string&);
template CLI::Option* add_number_option(CLI::App&, const char*, double&, double, double,
                                        const std::string&);

std::string check_positive(const std::string& text) {
  const std::optional<double> value = read_number<double>(text);
  const bool fits = value && *value > 0 && std::isfinite(*value);
  return fits ? "" : fmt::format("must be a number above 0, is '{}'", text);
}

void add_size_option(CLI::App& app, const char* names, size_t& bytes,
                     const std::string& description) {
  const auto parse = [names, &bytes](const std::string& text) {
    const std::optional<uint64_t> parsed = parse_bytes(text);
    if (!parsed)
      throw CLI::ValidationError(
          names, fmt::format("must be a size such as 8, 64K or 1.5G, is '{}'", text));
    bytes = *parsed;
  };
  app.add_option_function<std::string>(names, parse, description)
      ->type_name("SIZE")
      ->default_str(short_size(bytes));
}

namespace {

void add_sets(CLI::App& app, std::vector<std::string>& sets, const char* type,
              const char* description) {
  // Added to those of the options that are settings: an option bound to `sets` would replace them.
  const auto add = [&sets](const std::vector<std::string>& more) {
    sets.insert(sets.end(), more.begin(), more.end());
  };
  app.add_option_function<std::vector<std::string>>("--set", add, description)
      ->type_name(type)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

void add_set_option(CLI::App& app, std::vector<std::string>& sets) {
  add_sets(app, sets, "SECTION.KEY=VALUE", "Override a setting of the run file; may be repeated");
}

void add_set_comm_option(CLI::App& app, std::vector<std::string>& sets) {
  add_sets(app, sets, "comm.KEY=VALUE",
           "Change a setting of [comm], see gxp.toml(5); may be repeated");
}

namespace {

// The GPUs whose data sheets say this size, and whose memory is another number of bytes; none if
// the text is no whole number of GB.
std::vector<const Gpu*> gpus_of_size(const std::string& text) {
  const std::string size = lower_case(text);
  const auto gb =
      size.ends_with("gb") ? read_number<int>(size.substr(0, size.size() - 2)) : std::nullopt;
  std::vector<const Gpu*> found;
  for (const Gpu& gpu : gpus()) {
    const bool differs = gpu.memory_bytes != uint64_t(gpu.memory_gb) * 1'000'000'000;
    if (gb && *gb == gpu.memory_gb && differs) found.push_back(&gpu);
  }
  return found;
}

}  // namespace

void add_limit_rule(Report& report, const std::string& text) {
  const std::vector<const Gpu*> same = gpus_of_size(text);
  if (same.empty()) return;
  std::vector<std::string_view> names;
  for (const Gpu* const gpu : same) names.push_back(gpu->name);
  report.facts.push_back(
      {{"limit_rule", "limit is"},
       fmt::format("the {} of {}, whose data sheets say {}; in units of 10^9 bytes: {}000MB",
                   format_bytes(same.front()->memory_bytes), joined(names, " and "), text,
                   same.front()->memory_gb)});
}

uint64_t read_limit(const std::string& text) {
  constexpr uint64_t kLeast = 4096;
  constexpr uint64_t kMost = uint64_t{1} << 50;
  if (const auto same = gpus_of_size(text); !same.empty()) return same.front()->memory_bytes;
  const std::optional<uint64_t> limit = parse_bytes(text);
  if (!limit || *limit == 0)
    fail(ErrorKind::kUsage, "--limit '{}': must be a size above 0, such as 80GB or 80GiB", text);
  if (*limit < kLeast)
    fail(ErrorKind::kUsage,
         "--limit '{}': {} bytes, in which no model fits; give more, or a unit, such as 80GB", text,
         *limit);
  if (*limit > kMost)
    fail(ErrorKind::kUsage, "--limit '{}': more than any GPU has; give at most {}", text,
         format_bytes(kMost));
  return *limit;
}

}  // namespace gxp
