#include "cmd/allreduce_test/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "cmd/choice_option.h"
#include "cmd/options.h"
#include "lib/base/text/joined.h"

namespace CLI {
class App;
}

namespace gxp {
namespace {

struct RefusedFlag {
  const char* names;
  const char* off;  // the value that asks for nothing; "": there is none
  const char* reason;
};

constexpr RefusedFlag kRefused[] = {
    {"-t,--nthreads", "1", "each rank is a process; use --nproc"},
    {"-g,--ngpus", "1", "each rank has one GPU; use --nproc with --device cuda"},
    {"-p,--parallel_init", "0", "each process is one rank"},
    {"-y,--stream_null", "0", "calls use a stream of their own"},
    {"-G,--cudagraph", "0", "the host orders the steps of a call, so a graph cannot record it"},
    {"-C,--report_cputime", "0", "a call returns when it is done, so its latency is the time"},
    {"-R,--local_register", "0", "use --memory communicator"},
    {"-x,--cta_policy", "0", "calls choose their CTAs themselves"},
    {"-D,--device_implementation", "0", "calls choose their CTAs themselves"},
    {"-V,--device_cta_count", "", "calls choose their CTAs themselves"},
    {"-M", "0", "memory is predicted before the run; --memory sets the origin of buffers"},
    {"-K,--per_iter_skip", "0", "use -w, which warms up untimed"},
};

void refuse(CLI::App& app, const RefusedFlag& flag) {
  const auto check = [flag](const std::string& value) {
    if (value != flag.off)
      throw CLI::ValidationError(flag.names, fmt::format("not supported: {}", flag.reason));
  };
  app.add_option_function<std::string>(flag.names, check, "Refused")->group("");
}

// Flags of nccl-tests that have no meaning on CPUs. Each is refused by name with the reason, unless
// its value says that it is off; no help lists them.
void add_refused_flags(CLI::App& app) {
  for (const RefusedFlag& flag : kRefused) refuse(app, flag);
}

void add_sweep(CLI::App& app, Sweep& sweep) {
  add_size_option(app, "-b,--minbytes", sweep.min_bytes, "Smallest size");
  add_size_option(app, "-e,--maxbytes", sweep.max_bytes, "Largest size");
  add_size_option(app, "-i,--stepbytes", sweep.step_bytes, "Difference between sizes");
  add_number_option(app, "-f,--stepfactor", sweep.factor, 2, 1 << 30,
                    "Ratio between sizes, instead of --stepbytes");
}

void add_what(CLI::App& app, AllreduceOptions& options) {
  std::vector<std::string_view> names, redops;
  for (const BenchOperation& operation : operations()) names.push_back(operation.name);
  for (const ReduceOp op : reduce_ops()) redops.push_back(to_string(op));
  app.add_option("--op", options.operation, "Operation")
      ->type_name(fmt::format("{}|all", joined(names, "|")))
      ->capture_default_str();
  app.add_option("-o,--redop", options.redop, "Reduction")
      ->type_name(fmt::format("{}|all", joined(redops, "|")))
      ->capture_default_str();
  app.add_option("-d,--datatype", options.dtype,
                 "Element type. gxp's own names, such as f32 and bf16, work too")
      ->type_name(fmt::format("{}|all", joined(nccl_type_names(), "|")))
      ->capture_default_str();
  app.add_option("-r,--root", options.root, "Root rank of operations that have one")
      ->type_name("RANK|all")
      ->capture_default_str();
}

void add_memory(CLI::App& app, AllreduceOptions& options) {
  BenchOptions& bench = options.bench;
  add_choice_option(app, "--device", options.device, kDeviceChoiceNames,
                    "Device whose memory holds the buffers");
  add_choice_option(app, "--memory", bench.memory, kMemoryOriginNames,
                    "Origin of the buffers. communicator: memory that peers access directly. "
                    "ordinary: any other");
  add_number_option(app, "-u,--unalign", bench.unalign, 0, 4096,
                    "Offset of each buffer from a page boundary, in elements");
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
         "Calls that are checked before timing. If any are, one is checked after it too")
      ->expected(0, 1)
      ->type_name("N")
      ->default_str(std::to_string(checks));
}

void add_measuring(CLI::App& app, BenchOptions& bench) {
  add_number_option(app, "-n,--iters", bench.iterations, 1, 1'000'000, "Timed iterations per size")
      ->default_str("as many as take half a second");
  add_number_option(app, "-w,--warmup_iters", bench.warmup, 0, 1'000'000,
                    "Untimed iterations before them")
      ->default_str("50 up to 64K, else 5");
  add_number_option(app, "-m,--agg_iters", bench.calls, 1, 1'000'000,
                    "Calls per iteration, back to back");
  add_number_option(app, "-N,--run_cycles", bench.cycles, 0, 1'000'000,
                    "Passes over all sizes; 0: until stopped");
  add_check(app, bench.checks);
  const auto set_pacing = [&bench](int mode) { bench.pacing = Pacing(mode); };
  app.add_option_function<int>("-z,--blocking", set_pacing,
                               "Barrier: 1: timed, after a call; 2: none; 3: untimed, before")
      ->check([](const std::string& mode) -> std::string {
        if (mode == "1" || mode == "2" || mode == "3") return "";
        if (mode == "0") return "0 is not supported: a call returns when it is done; use 2";
        return fmt::format("must be 1, 2 or 3, is '{}'", mode);
      })
      ->type_name("1|2|3")
      ->default_str(std::to_string(int(bench.pacing)));
}

void add_switch(CLI::App& app, const char* names, bool& value, const std::string& description) {
  const auto check = [](const std::string& text) -> std::string {
    return text == "0" || text == "1" ? "" : fmt::format("must be 0 or 1, is '{}'", text);
  };
  app.add_option(names, value, description)
      ->check(check)
      ->type_name("0|1")
      ->default_str(value ? "1" : "0");
}

void add_output(CLI::App& app, AllreduceOptions& options) {
  BenchOptions& bench = options.bench;
  const auto set_average = [&bench](int mode) { bench.average = Average(mode); };
  app.add_option_function<int>("-a,--average", set_average,
                               "Time shown: 0: rank 0's; 1: mean; 2: fastest; 3: slowest")
      ->check([](const std::string& mode) -> std::string {
        const bool known = mode.size() == 1 && mode[0] >= '0' && mode[0] <= '3';
        return known ? "" : fmt::format("must be 0, 1, 2 or 3, is '{}'", mode);
      })
      ->type_name("0|1|2|3")
      ->default_str(std::to_string(int(bench.average)));
  add_switch(app, "-I,--per_iter_timing", bench.per_iteration,
             "1: also show fastest, slowest and 99th percentile. JSON then has every "
             "iteration");
  add_switch(app, "-S,--report_timestamps", bench.timestamps, "1: show when each row was finished");
  app.add_option("-J,--output_file", options.output_file,
                 "Also write the results to FILE.json or FILE.csv")
      ->type_name("FILE");
  add_format_option(app, options.format);
}

void add_criteria(CLI::App& app, AllreduceOptions& options) {
  app.add_option("--min-bw", options.bench.min_busbw,
                 "Fail if the average bus bandwidth is below 90% of this")
      ->check(check_positive)
      ->type_name("GB/s");
  app.add_option("--baseline", options.baseline,
                 "Fail if a row is slower than in this JSON of an earlier run")
      ->type_name("FILE");
  const auto parse = [&options](const std::string& text) {
    const std::optional<double> tolerance = parse_percentage(text);
    if (!tolerance)
      throw CLI::ValidationError("--tolerance",
                                 fmt::format("must be a percentage such as 15%, is '{}'", text));
    options.tolerance = *tolerance;
  };
  app.add_option_function<std::string>("--tolerance", parse,
                                       "How much slower than the baseline a row may be")
      ->type_name("PERCENT")
      ->default_str(fmt::format("{:g}%", 100 * options.tolerance));
}

}  // namespace

void define_options(CLI::App& app, AllreduceOptions& options) {
  // As with nccl-tests, so that a script's flags can be followed by one's own.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_what(app, options);
  add_sweep(app, options.bench.sweep);
  add_measuring(app, options.bench);
  add_memory(app, options);
  add_comm_options(app, options.comm_sets);
  add_set_comm_option(app, options.comm_sets);
  app.add_flag("--deterministic", options.deterministic,
               "Use only the algorithms that train uses by default. Their results do not depend on "
               "an element's position in the buffer");
  add_launch_options(app, options.launch);
  add_modes(app, options);
  add_criteria(app, options);
  add_output(app, options);
  add_refused_flags(app);
}

}  // namespace gxp
