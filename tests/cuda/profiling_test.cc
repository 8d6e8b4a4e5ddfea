// What a profiler of an emulated GPU sees of a run.
#include <map>
#include <stdexcept>

#include "lib/device/cuda_device.h"
#include "lib/train/profiled_steps.h"
#include "lib/train/step/cuda_backend.h"
#include "tests/catch.h"
#include "tests/cuda/emulation/cuda_profiler_api.h"
#include "tests/cuda/emulation/nvtx3/nvToolsExt.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

std::map<std::string, int> counts(const std::vector<std::string>& names) {
  std::map<std::string, int> counted;
  for (const std::string& name : names) ++counted[name];
  return counted;
}

// Steps `from` to `to` of a run that profiles some, and what the profiler is told in each.
std::vector<std::string> profile(const std::string& setting, int from, int to) {
  const auto device = make_cuda_device(0);
  std::vector<std::string> told;
  {
    ProfiledSteps steps(parse_profile_range(setting), *device);
    take_emulated_captures();
    for (int step = from; step <= to; ++step) {
      steps.begin_step(step);
      for (const std::string& call : take_emulated_captures())
        told.push_back(fmt::format("{} before {}", call, step));
      steps.end_step(step);
      for (const std::string& call : take_emulated_captures())
        told.push_back(fmt::format("{} after {}", call, step));
    }
  }
  for (const std::string& call : take_emulated_captures()) told.push_back(call + " at the end");
  return told;
}

}  // namespace

TEST_CASE("a profiler captures the steps that train.profile_steps names", "[profile]") {
  using Lines = std::vector<std::string>;
  CHECK(profile("3-5", 1, 7) == Lines{"start before 3", "stop after 5"});
  CHECK(profile("3-3", 1, 7) == Lines{"start before 3", "stop after 3"});
  CHECK(profile("3-5", 4, 7) == Lines{"start before 4", "stop after 5"});  // resumed
  CHECK(profile("3-5", 1, 4) == Lines{"start before 3", "stop at the end"});
  CHECK(profile("3-5", 6, 7).empty());
  CHECK(profile("", 1, 3).empty());
}

TEST_CASE("each operation of a step is a range with its name", "[profile]") {
  const RunConfig config =
      golden_config("gpt2-accum", 2, {"train.gemm_cache=off", "parallel.strategy=zero3"});
  const auto seen = run_ranks(2, [&](Communicator& communicator) {
    Backend backend = make_cuda_backend(0, config.train, 2);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    communicator.barrier();
    if (communicator.rank() == 0) take_emulated_ranges();
    communicator.barrier();
    trainer.step(false);
    communicator.barrier();
    std::vector<std::string> expected;  // of both ranks, whose threads are of one process
    for (const Op& op : trainer.program().ops) expected.insert(expected.end(), 2, describe(op));
    return std::pair(communicator.rank() == 0 ? take_emulated_ranges() : expected, expected);
  });
  CHECK(counts(seen[0].first) == counts(seen[0].second));
}

TEST_CASE("the range of an operation that fails ends", "[profile]") {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("compute");
  take_emulated_ranges();
  const Work fails{"forward h.0", [] { throw std::runtime_error("lost"); }, {}};
  const Work follows{"forward h.1", [] {}, {}};
  stream->submit(fails);
  stream->submit(follows);
  CHECK_THROWS_WITH(stream->synchronize(Deadline::after(std::chrono::seconds(20))), "lost");
  CHECK(take_emulated_ranges() == std::vector<std::string>{"forward h.0"});
  stream->submit(follows);
  stream->synchronize(Deadline::after(std::chrono::seconds(20)));
  CHECK(take_emulated_ranges() == std::vector<std::string>{"forward h.1"});
}

}  // namespace gxp
