// Options that several subcommands share. The variables that they fill must outlive the command's
// action.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lib/base/text/joined.h"
#include "lib/report/report.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace gxp {

struct LaunchRequest;

// --format text|csv|json
void add_format_option(CLI::App& app, Format& format);

// --nproc --nnodes --node-rank --master --no-bind --join-timeout: how a command's ranks start.
void add_launch_options(CLI::App& app, LaunchRequest& request);

// --transport, --algorithm, ...: an option for each setting of [comm] that has one (OptionForm);
// each adds "comm.KEY=VALUE" to `sets`, for load_comm_config().
void add_comm_options(CLI::App& app, std::vector<std::string>& sets);

// --set comm.KEY=VALUE, any number of times; for load_comm_config().
void add_set_comm_option(CLI::App& app, std::vector<std::string>& sets);

// Whether --help only lists the names of the options under this heading.
bool is_listed_briefly(std::string_view heading);

// The type of an option that names a row of a table: "adamw|sgd|lion".
template <class Table>
std::string names_of(const Table& table) {
  std::vector<std::string_view> names;
  for (const auto& row : table) names.push_back(row.name);
  return joined(names, "|");
}

// Headings of options that few users need.
inline constexpr const char* kStartingRanks = "Starting ranks";
inline constexpr const char* kCommSettings = "Settings of [comm] as options";
inline constexpr const char* kGenerating = "With --generate";
inline constexpr const char* kExchange = "Configurations of other launchers";
inline constexpr const char* kSimulating = "With --simulate";

// Calls add(), whose options help and manual show under `heading`.
void add_under(CLI::App& app, const char* heading, const std::function<void()>& add);

// A number from `low` to `high`; INT_MAX is no limit. The default is `number`, if it is in the
// range. Number: int, uint64_t or double.
template <class Number>
CLI::Option* add_number_option(CLI::App& app, const char* names, Number& number,
                               std::type_identity_t<Number> low, std::type_identity_t<Number> high,
                               const std::string& description);

// For CLI::Option::check(): a finite number above 0.
std::string check_positive(const std::string& text);

// A size as lib/base/bytes.h reads it: 8, 64K, 1G. The default is `bytes`.
void add_size_option(CLI::App& app, const char* names, size_t& bytes,
                     const std::string& description);

// The memory of a GPU by --limit: "80GB" is what the data sheets of GPUs with 80 GiB say, and
// means these. kUsage if it is no size from 4 KiB to 1 PiB.
uint64_t read_limit(const std::string& text);
// Adds that rule to the facts where it applies.
void add_limit_rule(Report& report, const std::string& text);

// --set SECTION.KEY=VALUE, any number of times; for load_config().
void add_set_option(CLI::App& app, std::vector<std::string>& sets);

}  // namespace gxp
