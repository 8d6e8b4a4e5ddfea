// From the words of the command line to what they ask for.

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cmd/allreduce_test/options.h"
#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/near_match.h"
#include "lib/base/text/read_number.h"
#include "lib/collective/compress/codec.h"
#include "lib/config/print.h"

namespace gxp {
namespace {

// Calls parse(name) for a name of the user's, or for all there are.
template <class Value, class Parse>
std::vector<Value> values_of(const std::string& option, const std::string& word,
                             const std::vector<std::string>& names, const Parse& parse) {
  std::vector<Value> values;
  for (const std::string& name : names) {
    if (word == "all") values.push_back(*parse(name));
  }
  if (word == "all") return values;
  if (const auto value = parse(word)) return {*value};
  fail(ErrorKind::kUsage, "{} {}: must be one of: {}, all{}", option, word, joined(names, ", "),
       did_you_mean(word, names));
}

std::optional<const BenchOperation*> parse_operation(const std::string& name) {
  const BenchOperation* found = find_operation(name);
  return found == nullptr ? std::nullopt : std::optional(found);
}

// nccl-tests' name or gxp's.
std::optional<DType> parse_type(const std::string& name) {
  const auto names = nccl_type_names();
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? parse_dtype(name) : std::optional(DType(found - names.begin()));
}

std::vector<int> parse_roots(const std::string& text) {
  if (text == "all") return {};
  const std::optional<int> root = read_number<int>(text);
  if (!root) fail(ErrorKind::kUsage, "--root {}: must be a rank or all", text);
  return {*root};
}

// Not compared between ranks: what may differ between hosts, and settings, which are compared below.
bool is_left_out(const CLI::Option& option) {
  return option.check_lname("node-rank") || option.check_lname("flight-recorder") ||
         option.check_lname("set");
}

}  // namespace

CaseRequest case_request(const AllreduceOptions& options, const CommConfig& comm) {
  std::vector<std::string> operation_names, redop_names;
  for (const BenchOperation& operation : operations()) operation_names.emplace_back(operation.name);
  for (const ReduceOp op : reduce_ops()) redop_names.emplace_back(to_string(op));
  const std::vector<std::string> type_names(nccl_type_names().begin(), nccl_type_names().end());
  const auto redop = parse_reduce_op(options.operation);
  if (redop) {
    fail(ErrorKind::kUsage,
         "--op {}: it names the operation, such as all_reduce; the reduction is "
         "-o {}",
         options.operation, options.operation);
  }
  return {
      .operations = values_of<const BenchOperation*>("--op", options.operation, operation_names,
                                                     parse_operation),
      .dtypes = values_of<DType>("--datatype", options.dtype, type_names, parse_type),
      .redops = values_of<ReduceOp>("--redop", options.redop, redop_names,
                                    [](const std::string& name) { return parse_reduce_op(name); }),
      .roots = parse_roots(options.root),
      .sizes = sizes_of(options.bench.sweep),
      .codec = find_codec(comm.codec),
      .skip_unsupported = options.dtype == "all" || options.redop == "all"};
}

JobSettings job_settings(const AllreduceOptions& options, const CLI::App& app,
                         const CommConfig& comm) {
  RunConfig run;
  run.comm = comm;
  FlatConfiguration configuration;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || is_left_out(*option)) continue;
    configuration.emplace_back(option->get_name(), joined(option->results(), " "));
  }
  for (auto& setting : flatten(run)) {
    if (setting.first.starts_with("comm.")) configuration.push_back(std::move(setting));
  }
  return {.comm = comm,
          .layout_invariant = options.deterministic,
          .configuration = std::move(configuration)};
}

}  // namespace gxp
