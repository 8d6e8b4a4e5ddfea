// Runs that notice that they go wrong: a bit of a rank's memory has changed, or a loss is an outlier.
#include <fmt/format.h>
#include <sys/uio.h>

#include <cstring>
#include <fstream>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {

using Bytes = std::string;
constexpr unsigned long kLargest = 64 << 20;  // of a mapping with the weights; others are reserves

// The first bytes of a tensor of a safetensors file.
Bytes beginning_of(const std::string& path, const std::string& tensor, size_t bytes) {
  const Bytes file = read_file(path);
  uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  const auto entry = nlohmann::json::parse(file.substr(8, header))[tensor];
  return file.substr(8 + header + entry["data_offsets"][0].get<size_t>(), bytes);
}

// Flips the lowest bit behind every place of a process's memory that begins with `bytes`.
size_t flip_where(pid_t process, const Bytes& bytes) {
  size_t flipped = 0;
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char mode[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, mode) != 3 || mode[1] != 'w')
      continue;
    if (end - begin > kLargest) continue;
    Bytes memory(end - begin, '\0');
    iovec local{memory.data(), memory.size()};
    const iovec remote{reinterpret_cast<void*>(begin), memory.size()};
    const ssize_t count = ::process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (count <= 0) continue;
    memory.resize(size_t(count));
    for (size_t at = memory.find(bytes); at != Bytes::npos; at = memory.find(bytes, at + 1)) {
      memory[at] = char(memory[at] ^ 1);
      local = {memory.data() + at, 1};
      const iovec place{reinterpret_cast<void*>(begin + at), 1};
      flipped += ::process_vm_writev(process, &local, 1, &place, 1, 0) == 1;
    }
  }
  return flipped;
}

}  // namespace

TEST_CASE("a changed bit of a weight ends the job before it is saved, and names the rank",
          "[cmd]") {
  const GoldenRun run;
  const Bytes weights = beginning_of(run.golden("init.safetensors"), "transformer.wpe.weight", 256);
  // At this rate no weight changes, so that it can be found in the memory.
  std::vector<std::string> arguments = run.train({"--nproc", "4"});
  for (const char* setting :
       {"train.steps=1000000", "optim.lr=1e-40", "lr_schedule.name=constant",
        "lr_schedule.min_lr=0", "train.check_replicas=20", "checkpoint.every=50"}) {
    arguments.emplace_back("--set");
    arguments.emplace_back(setting);
  }
  Process launcher(gxp_argv(arguments), {});
  REQUIRE(poll_until([&] { return run.metrics().size() >= 60; }));
  size_t flipped = 0;
  for (const pid_t process : processes_with(run.path("run.toml")))
    if (variable_of(process, "GXP_RANK") == "2") flipped += flip_where(process, weights);
  CHECK(flipped >= 1);
  const Outcome outcome = launcher.end(Deadline::after(std::chrono::seconds(60)));
  CAPTURE(outcome.err);
  CHECK(outcome.code == 5);
  CHECK(
      outcome.err.find("rank 2 holds other values of transformer.wpe.weight than ranks 0, 1, 3") !=
      std::string::npos);
  CHECK(run.weights().find(weights) != Bytes::npos);  // of the newest checkpoint
}

TEST_CASE("a run goes back to its newest checkpoint where a step is bad, and on with other data",
          "[cmd]") {
  const GoldenRun run;
  // The losses of so few rows differ much.
  const Outcome outcome =
      run.run({"--set", "train.steps=300", "--set", "checkpoint.every=10", "--set",
               "data.order=shuffled", "--set", "train.bad_step=roll-back", "--set",
               "train.norm_outlier=2.5", "--set", "lr_schedule.name=constant"});
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  const size_t at = outcome.err.find(
      "standard deviations above the mean of the last 128; rolled back "
      "to step ");
  CHECK(at != std::string::npos);
  const std::vector<nlohmann::json> metrics = run.metrics();
  REQUIRE(metrics.size() == 300);
  for (size_t i = 0; i < metrics.size(); ++i) CHECK(metrics[i]["step"] == i + 1);
}

}  // namespace gxp
