#include "lib/train/background_save.h"

#include <map>

#include "lib/ckpt/native/checkpoint.h"
#include "tests/catch.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

// The bytes of each file below the directory.
std::map<std::string, std::string> contents_of(const std::string& directory) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file())
      contents[fs::relative(entry.path(), directory)] = read_text(entry.path(), UINT64_MAX);
  }
  return contents;
}

}  // namespace

TEST_CASE("a checkpoint written while training goes on is the one that training would wait for",
          "[train]") {
  const int world_size = GENERATE(1, 3);
  const std::string strategy = GENERATE("ddp", "zero3");
  const TemporaryDirectory waited, meanwhile;
  const auto config_in = [&](const TemporaryDirectory& directory) {
    return golden_config("gpt2-accum", world_size,
                         {"checkpoint.dir=" + directory.path(), "parallel.strategy=" + strategy});
  };
  const RunConfig with_wait = config_in(waited), without = config_in(meanwhile);
  run_ranks(world_size, [&](Communicator& c) {
    Backend backend = make_backend(with_wait.train, world_size);
    Trainer trainer(with_wait, c, backend);
    trainer.initialise_weights();
    const KeyValues settings = {{"train.seed", "1"}};
    BackgroundSave background(c, without, settings);
    for (int step = 0; step < 4; ++step) {
      trainer.step(false);
      save_state(trainer, c, with_wait, settings);
      background.start(trainer);
    }
    background.finish();
    return 0;
  });
  CAPTURE(world_size, strategy);
  CHECK(contents_of(meanwhile.path()) == contents_of(waited.path()));
  CHECK(complete_steps(meanwhile.path()) == std::vector<uint64_t>{3, 4});
}

TEST_CASE("a save that is not to end leaves the older checkpoints", "[train]") {
  const TemporaryDirectory directory;
  const RunConfig config = golden_config("gpt2-accum", 1, {"checkpoint.dir=" + directory.path()});
  run_ranks(1, [&](Communicator& c) {
    Backend backend = make_backend(config.train, 1);
    Trainer trainer(config, c, backend);
    trainer.initialise_weights();
    save_state(trainer, c, config, {});
    trainer.step(false);
    BackgroundSave(c, config, {}).start(trainer);
    return 0;
  });
  const auto steps = complete_steps(directory.path());
  REQUIRE_FALSE(steps.empty());
  CHECK(steps.front() == 0);
  CHECK_NOTHROW(Checkpoint::open(directory.path()).verify());
}

}  // namespace gxp
