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
    {"-t,--nthreads", "1", "a rank is a process; --nproc says how many"},
    {"-g,--ngpus", "1", "ranks have no GPUs; --nproc says how many ranks there are"},
    {"-p,--parallel_init", "0", "each process makes one rank"},
    {"-y,--stream_null", "0", "there are no CUDA streams"},
    {"-G,--cudagraph", "0", "there is no GPU to replay a graph"},
    {"-C,--report_cputime", "0", "calls run on the CPU, so their latency is the time"},
    {"-R,--local_register", "0", "use --memory communicator"},
    {"-x,--cta_policy", "0", "there is no GPU"},
    {"-D,--device_implementation", "0", "there is no GPU"},
    {"-V,--device_cta_count", "", "there is no GPU"},
    {"-M", "0", "memory is predicted before the run; --memory says where buffers come from"},
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
