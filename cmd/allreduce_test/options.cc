#include "cmd/allreduce_test/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "cmd/options.h"
#include "cmd/refused_flags.h"
#include "lib/base/text/near_match.h"

namespace gxp {
namespace {

void add_sweep(CLI::App& app, Sweep& sweep) {
  add_size_option(app, "-b,--minbytes", sweep.min_bytes, "Smallest size; 32M");
  add_size_option(app, "-e,--maxbytes", sweep.max_bytes, "Largest size; 32M");
  add_size_option(app, "-i,--stepbytes", sweep.step_bytes, "From one size to the next; 1M");
  add_number_option(app, "-f,--stepfactor", sweep.factor, 2, 1 << 30,
                    "The next size is so many times the last; instead of --stepbytes");
}

void add_what(CLI::App& app, AllreduceOptions& options) {
  std::vector<std::string_view> names, redops;
  for (const BenchOperation& operation : operations()) names.push_back(operation.name);
  for (const ReduceOp op : reduce_ops()) redops.push_back(to_string(op));
  app.add_option("--op", options.operation, "Operation to measure")
      ->type_name(fmt::format("{}|all", fmt::join(names, "|")))
      ->capture_default_str();
  app.add_option("-o,--redop", options.redop, "Reduction, of operations that reduce")
      ->type_name(fmt::format("{}|all", fmt::join(redops, "|")))
      ->capture_default_str();
  app.add_option("-d,--datatype", options.dtype, "Element type; also f32, bf16, ...")
      ->type_name(fmt::format("{}|all", fmt::join(nccl_type_names(), "|")))
      ->capture_default_str();
  app.add_option("-r,--root", options.root, "Root rank, of operations that have one, or all")
      ->type_name("RANK|all")
      ->capture_default_str();
}

void add_memory(CLI::App& app, BenchOptions& bench) {
  const auto parse = [&bench](const std::string& word) {
    const std::vector<std::string> words = {"communicator", "ordinary"};  // as MemoryOrigin
    const auto found = std::ranges::find(words, word);
    if (found == words.end())
      throw CLI::ValidationError("--memory",
                                 fmt::format("must be communicator or ordinary, is '{}'{}", word,
                                             did_you_mean(word, words)));
    bench.memory = MemoryOrigin(found - words.begin());
  };
  app.add_option_function<std::string>(
         "--memory", parse,
         "Where buffers come from: the communicator, whose memory peers reach directly, or "
         "anywhere")
      ->type_name("communicator|ordinary")
      ->default_str("ordinary");
  add_number_option(app, "-u,--unalign", bench.unalign, 0, 4096,
                    "Elements by which buffers begin behind a page boundary; 0");
}

void add_check(CLI::App& app, int& checks) {
  const auto parse = [&checks](const std::string& text) {
    const char* end = text.data() + text.size();
    int value = 1;  // of --check without a value
    if (!text.empty() && text != "true") {
      const auto [rest, error] = std::from_chars(text.data(), end, value);
      if (error != std::errc() || rest != end || value < 0)
        throw CLI::ValidationError("--check", fmt::format("must be a count, is '{}'", text));
    }
    checks = value;
  };
  app.add_option_function<std::string>(
         "-c,--check", parse,
         "Calls whose results are checked before the timing, beside one after it; 0: none; 1")
      ->expected(0, 1)
      ->type_name("N");
}

void add_measuring(CLI::App& app, BenchOptions& bench) {
  add_number_option(app, "-n,--iters", bench.iterations, 1, 1'000'000,
                    "Timed iterations of each size; without it as many as take half a second");
  add_number_option(app, "-w,--warmup_iters", bench.warmup, 0, 1'000'000,
                    "Untimed iterations before them; without it 50 up to 64K, else 5");
  add_number_option(app, "-m,--agg_iters", bench.calls, 1, 1'000'000,
                    "Calls of one iteration, back to back; 1");
  add_number_option(app, "-N,--run_cycles", bench.cycles, 0, 1'000'000,
                    "How often the sizes are run through; 0: until stopped; 1");
  add_check(app, bench.checks);
  const auto set_pacing = [&bench](int mode) { bench.pacing = Pacing(mode); };
  app.add_option_function<int>(
         "-z,--blocking", set_pacing,
         "Barrier after each call, timed (1), none (2), or before each call, untimed (3); 3")
      ->check([](const std::string& mode) -> std::string {
        if (mode == "1" || mode == "2" || mode == "3") return "";
        if (mode == "0") return "0 is not supported: a call returns when it is done; use 2";
        return fmt::format("must be 1, 2 or 3, is '{}'", mode);
      })
      ->type_name("1|2|3");
}

void add_switch(CLI::App& app, const char* names, bool& value, const std::string& description) {
  const auto check = [](const std::string& text) -> std::string {
    return text == "0" || text == "1" ? "" : fmt::format("must be 0 or 1, is '{}'", text);
  };
  app.add_option(names, value, description)->check(check)->type_name("0|1");
}

void add_output(CLI::App& app, AllreduceOptions& options) {
  BenchOptions& bench = options.bench;
  const auto set_average = [&bench](int mode) { bench.average = Average(mode); };
  app.add_option_function<int>(
         "-a,--average", set_average,
         "Whose time the text shows: rank 0's (0), the mean (1), the fastest's (2), the slowest's "
         "(3); 3")
      ->check(CLI::Range(0, 3))
      ->type_name("0|1|2|3");
  add_switch(app, "-I,--per_iter_timing", bench.per_iteration,
             "1: also the fastest, slowest and 99th percentile iteration; in JSON each one's time");
  add_switch(app, "-S,--report_timestamps", bench.timestamps, "1: when each row was done");
  app.add_option("-J,--output_file", options.output_file,
                 "Write the results to this file too: FILE.json or FILE.csv")
      ->type_name("FILE");
  add_format_option(app, options.format);
}

void add_criteria(CLI::App& app, AllreduceOptions& options) {
  app.add_option("--min-bw", options.bench.min_busbw,
                 "Fail if the average bus bandwidth is below 90% of this")
      ->check(CLI::PositiveNumber)
      ->type_name("GB/s");
  app.add_option("--baseline", options.baseline,
                 "JSON of an earlier run; fail if a row has become slower")
      ->type_name("FILE");
  const auto parse = [&options](const std::string& text) {
    const std::optional<double> tolerance = parse_percentage(text);
    if (!tolerance)
      throw CLI::ValidationError("--tolerance",
                                 fmt::format("must be a percentage such as 15%, is '{}'", text));
    options.tolerance = *tolerance;
  };
  app.add_option_function<std::string>("--tolerance", parse, "By how much slower a row may be; 15%")
      ->type_name("PERCENT");
}

}  // namespace

void define_options(CLI::App& app, AllreduceOptions& options) {
  // As with nccl-tests, so that a script's flags can be followed by one's own.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_what(app, options);
  add_sweep(app, options.bench.sweep);
  add_measuring(app, options.bench);
  add_memory(app, options.bench);
  add_comm_options(app, options.comm_sets);
  app.add_flag("--deterministic", options.deterministic,
               "Choose only algorithms whose bits do not depend on where an element lies in a "
               "buffer, as train does");
  add_launch_options(app, options.launch);
  add_modes(app, options);
  add_criteria(app, options);
  add_output(app, options);
  add_refused_flags(app);
}

}  // namespace gxp
