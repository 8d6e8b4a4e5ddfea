// checkpoint.layout.
#include "lib/ckpt/native/full_layout.h"

#include <map>

#include "lib/ckpt/native/checkpoint.h"
#include "lib/train/background_save.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

RunConfig config_of(const std::string& dir, int world_size, const Settings& more) {
  return golden_config("gpt2-accum", world_size,
                       Settings{"checkpoint.dir=" + dir, "checkpoint.layout=full"} + more);
}

// Resumes from `from`, saves to `to`.
void save_again(const RunConfig& from, const RunConfig& to, int world_size, bool waits) {
  run_ranks(world_size, [&](Communicator& c) {
    Backend backend = make_backend(from.train, world_size);
    Trainer trainer(from, c, backend);
    if (!resume_state(trainer, c, from, {})) throw std::runtime_error("nothing to resume from");
    if (waits) {
      save_state(trainer, c, to, {});
    } else {
      BackgroundSave background(c, to, {});
      background.start(trainer);
      background.finish();
    }
    return 0;
  });
}

// By name, of the newest step.
std::map<std::string, std::string> data_files_in(const std::string& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(Checkpoint::open(dir).path())) {
    const std::string name = entry.path().filename();
    if (name != kManifestName) files[name] = read_text(entry.path(), UINT64_MAX);
  }
  return files;
}

}  // namespace

TEST_CASE("a full checkpoint is one file with the same bytes, whoever writes it", "[train]") {
  const std::string optimizer = GENERATE("name=adamw", "name=adafactor", "state_dtype=int8");
  const TemporaryDirectory directory;
  const Settings sets = {"optim." + optimizer, "train.frozen=[\"wpe.weight\"]"};
  const RunConfig first = config_of(directory / "first", 1, sets);
  run_ranks(1, [&](Communicator& c) { return train_part(first, c, 2).steps; });
  const auto expected = data_files_in(directory / "first");
  CHECK(expected.size() == 2);  // one is of what is frozen
  const auto [world_size, strategy] =
      GENERATE(table<int, std::string>({{2, "ddp"}, {3, "zero1"}, {3, "zero3"}, {4, "zero3"}}));
  const bool waits = GENERATE(true, false);
  CAPTURE(optimizer, world_size, strategy, waits);
  const Settings here = sets + Settings{"parallel.strategy=" + strategy};
  const std::string dir = fmt::format("{}/again", directory.path());
  save_again(config_of(directory / "first", world_size, here), config_of(dir, world_size, here),
             world_size, waits);
  CHECK(data_files_in(dir) == expected);
  CHECK_NOTHROW(Checkpoint::open(dir).verify());
}

TEST_CASE("a rank's file that has changed before it is joined is no part of a checkpoint",
          "[train]") {
  const TemporaryDirectory directory;
  const TensorInfo info = {"w", Role::kWeight, StorageDType::kF32, {4}};
  const std::vector<float> values = {1, 2};
  std::vector<FilePart> parts;
  for (int rank = 0; rank < 2; ++rank) {
    CheckpointWriter writer(directory.path(), {7, rank, 2});
    writer.add(info, uint64_t(rank) * 2, memory_of(values));
    parts.push_back(writer.finish());
  }
  const std::string file = partial_path(directory.path(), 7) + "/shard-00001-of-00002.bin";
  write_text(file, "12345678");
  const Caught caught = error_of([&] {
    join_parts(directory.path(), {7, 0, 2}, parts, {"w"}, {});
  });
  CHECK(caught.kind == ErrorKind::kCorrupt);
  CHECK(caught.says("join " + file + ": changed since its rank wrote it"));
}

}  // namespace gxp
