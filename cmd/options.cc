#include "cmd/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "cmd/choice_option.h"
#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/collective/tune/selection.h"
#include "lib/config/settings.h"
#include "lib/job/join.h"

namespace gxp {
namespace {

// "--segment-bytes". The deadline has nccl-tests' name.
std::string option_of(const Setting& setting) {
  if (setting.key == "timeout_s") return "-T,--timeout";
  std::string name = "--" + setting.key;
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string type_name_of(const Setting& setting) {
  if (!setting.check.words.empty()) return fmt::format("{}", fmt::join(setting.check.words, "|"));
  if (setting.key == "profile") return "FILE";
  if (setting.key == "flight_recorder") return "DIR";
  if (setting.type == SettingType::kText) return "NAME";
  if (setting.type == SettingType::kBytes) return "SIZE";
  if (setting.type == SettingType::kBool) return "true|false";
  return "N";
}

// The names of algorithms come from their table, which lib/config does not know.
std::string doc_of(const Setting& setting) {
  std::string doc(setting.doc);
  if (setting.name() == "comm.algorithm")
    doc += fmt::format(" One of: {}.", fmt::join(algorithm_choices(), ", "));
  return doc;
}

// CLI::Range lets nan pass, and a clock cannot count 1e10 s.
std::string seconds_to_wait(const std::string& text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && seconds >= 0.001 && seconds <= 1e6 ? "" : "must be from 0.001 to 1000000 seconds";
}

}  // namespace

void add_format_option(CLI::App& app, Format& format) {
  add_choice_option(app, "--format", format, kFormatNames, "How results are written to stdout");
}

void add_launch_options(CLI::App& app, LaunchRequest& request) {
  constexpr const char* kGroup = "Starting ranks";
  app.add_option("--nproc", request.nproc, "Ranks to start on this host")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  app.add_option("--nnodes", request.nnodes, "Hosts that run this same command")
      ->check(CLI::Range(1, 65536))
      ->group(kGroup)
      ->type_name("N");
  app.add_option("--node-rank", request.node_rank, "This host's number among them, from 0")
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup)
      ->type_name("N");
  app.add_option("--master", request.master, "Address at which rank 0, on the first host, listens")
      ->group(kGroup)
      ->type_name("HOST:PORT");
  app.add_flag("--no-bind", request.no_bind,
               "Let the system move ranks between CPUs; by default each rank is bound to its share "
               "of them, if each rank can have one or equally many ranks can share each")
      ->group(kGroup);
  app.add_option("--join-timeout", request.join_timeout_s,
                 "Seconds to wait until all ranks have joined (60)")
      ->check(seconds_to_wait)
      ->group(kGroup)
      ->type_name("SECONDS");
}

void add_comm_options(CLI::App& app, std::vector<std::string>& sets) {
  for (const Setting& setting : settings()) {
    if (setting.section != "comm") continue;
    const auto add = [&sets, name = setting.name()](const std::string& value) {
      sets.push_back(name + "=" + value);
    };
    app.add_option_function<std::string>(option_of(setting), add, doc_of(setting))
        ->group("Settings of [comm], see gxp.toml(5)")
        ->type_name(type_name_of(setting));
  }
}

template <class Number>
void add_number_option(CLI::App& app, const char* names, Number& number, int low, int high,
                       const std::string& description) {
  const auto check = [low, high](const std::string& text) -> std::string {
    int value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && rest == end && value >= low && value <= high) return "";
    return fmt::format("must be from {} to {}, is '{}'", low, high, text);
  };
  app.add_option(names, number, description)->type_name("N")->check(check);
}
template void add_number_option(CLI::App&, const char*, int&, int, int, const std::string&);
template void add_number_option(CLI::App&, const char*, uint64_t&, int, int, const std::string&);

void add_size_option(CLI::App& app, const char* names, size_t& bytes,
                     const std::string& description) {
  const auto parse = [names, &bytes](const std::string& text) {
    const std::optional<uint64_t> parsed = parse_bytes(text);
    if (!parsed)
      throw CLI::ValidationError(names,
                                 fmt::format("must be a size such as 8, 64K or 1G, is '{}'", text));
    bytes = *parsed;
  };
  app.add_option_function<std::string>(names, parse, description)->type_name("SIZE");
}

void add_set_option(CLI::App& app, std::vector<std::string>& sets) {
  app.add_option("--set", sets, "Override a setting of the run file; may be repeated")
      ->type_name("SECTION.KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

uint64_t read_limit(const std::string& text) {
  constexpr uint64_t kMost = uint64_t{1} << 50;
  const std::optional<uint64_t> limit = parse_bytes(text);
  if (!limit || *limit == 0)
    fail(ErrorKind::kUsage, "--limit '{}': no size above 0; give one such as 80GB or 80GiB", text);
  if (*limit > kMost)
    fail(ErrorKind::kUsage, "--limit '{}': more than any GPU has; give at most {}", text,
         format_bytes(kMost));
  return *limit;
}

}  // namespace gxp
