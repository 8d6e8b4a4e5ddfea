#include "cmd/refused_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

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

}  // namespace

void add_refused_flags(CLI::App& app) {
  for (const RefusedFlag& flag : kRefused) refuse(app, flag);
}

}  // namespace gxp
