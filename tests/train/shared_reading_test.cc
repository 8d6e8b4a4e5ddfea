#include "lib/train/replica/shared_reading.h"

#include <atomic>
#include <fstream>

#include "lib/train/training_state.h"
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/error_of.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

// What all threads of this process have read by system calls.
uint64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string key;
  uint64_t value = 0;
  while (file >> key >> value) {
    if (key == "rchar:") return value;
  }
  throw std::runtime_error("/proc/self/io has no rchar");
}

// Of `world_size` ranks that resume.
uint64_t bytes_read_to_resume(const RunConfig& config, int world_size) {
  uint64_t before = 0, after = 0;
  run_ranks(world_size, [&](Communicator& c) {
    Backend backend = make_backend(config.train, world_size);
    Trainer trainer(config, c, backend);
    c.barrier();
    if (c.rank() == 0) before = bytes_read();
    c.barrier();
    if (!resume_state(trainer, c, config, {})) throw std::runtime_error("nothing to resume from");
    if (c.rank() == 0) after = bytes_read();
    c.barrier();
    return 0;
  });
  return after - before;
}

// Tensors whose elements lie at odd offsets, that need several blocks, or that are empty.
const std::vector<TensorInfo> kMixed = {{"mask", Role::kWeight, StorageDType::kU8, {7}},
                                        {"small", Role::kWeight, StorageDType::kF32, {5}},
                                        {"none", Role::kWeight, StorageDType::kF32, {0, 3}},
                                        {"half", Role::kWeight, StorageDType::kBF16, {1001}},
                                        {"large", Role::kWeight, StorageDType::kF32, {1500007}},
                                        {"large", Role::kAdamM, StorageDType::kF64, {70001}}};

std::vector<uint8_t> content_of(const TensorInfo& info) {
  std::vector<uint8_t> bytes(info.bytes());
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t(i * i + info.bytes());
  return bytes;
}

Range share_of(const TensorInfo& info, int rank, int world_size) {
  const size_t begin = info.count() * size_t(rank) / size_t(world_size);
  return {begin, info.count() * size_t(rank + 1) / size_t(world_size) - begin};
}

void save_mixed(const std::string& dir, int world_size) {
  std::vector<FilePart> parts;
  for (int rank = 0; rank < world_size; ++rank) {
    CheckpointWriter writer(dir, {1, rank, world_size});
    for (const TensorInfo& info : kMixed) {
      const std::vector<uint8_t> content = content_of(info);
      const Range own = share_of(info, rank, world_size);
      const size_t element = size_of(info.dtype);
      writer.add(info, own.begin,
                 memory_of(content).slice(own.begin * element, own.count * element));
    }
    parts.push_back(writer.finish());
  }
  CheckpointInfo info;
  info.step = 1;
  publish_checkpoint(dir, parts, info, {});
}

// Whether each rank has had the content of what it needs, each byte once.
bool is_complete(const std::vector<NeededPart>& needed, const Checkpoint& checkpoint,
                 Communicator& c) {
  std::vector<std::vector<uint8_t>> found;
  size_t wanted = 0, taken = 0;
  for (const NeededPart& part : needed) {
    found.emplace_back(part.elements.count * size_of(kMixed[part.tensor].dtype));
    wanted += found.back().size();
  }
  read_shared(checkpoint, c, needed, [&](size_t part, size_t first, ConstMemory elements) {
    const size_t element = size_of(kMixed[needed[part].tensor].dtype);
    copy_on_host(memory_of(found[part]).slice(first * element, elements.bytes), elements);
    taken += elements.bytes;
  });
  for (size_t i = 0; i < needed.size(); ++i) {
    const std::vector<uint8_t> whole = content_of(kMixed[needed[i].tensor]);
    const size_t begin = needed[i].elements.begin * size_of(kMixed[needed[i].tensor].dtype);
    if (!std::equal(found[i].begin(), found[i].end(), whole.begin() + std::ptrdiff_t(begin)))
      return false;
  }
  return taken == wanted;
}

}  // namespace

TEST_CASE("all ranks together read each byte of a checkpoint once", "[train]") {
  const auto [writers, world_size, strategy, written_by] = GENERATE(from_range(combinations(
      std::vector<int>{1, 2}, std::vector<int>{1, 2, 3}, std::vector<std::string>{"ddp", "zero3"},
      std::vector<std::string>{"zero1", "ddp"})));
  const TemporaryDirectory directory;
  const auto config = [&](int ranks, const std::string& how) {
    return golden_config("gpt2-tiny", 1,
                         {"checkpoint.dir=" + directory.path(), "parallel.strategy=" + how,
                          fmt::format("train.micro_batch={}", 6 / ranks)});
  };
  const RunConfig first = config(writers, written_by);
  run_ranks(writers, [&](Communicator& c) { return train_part(first, c, 1); });
  uint64_t files = 0;
  const std::string step = directory / "step-00000001";
  for (const auto& entry : fs::directory_iterator(step)) files += entry.file_size();
  const uint64_t others = uint64_t(world_size - 1) * fs::file_size(step + "/" + kManifestName);
  const uint64_t found = bytes_read_to_resume(config(world_size, strategy), world_size);
  CAPTURE(writers, written_by, world_size, strategy, files);
  CHECK(found >= files);
  CHECK(found <= files + others + files / 20);  // ranks that wake each other read a little, too
}

TEST_CASE("ranks get what they need, whoever wrote it and wherever it lies", "[train]") {
  const auto [writers, readers, is_whole] = GENERATE(from_range(combinations(
      std::vector<int>{1, 2, 3}, std::vector<int>{1, 2, 3, 5}, std::vector<bool>{true, false})));
  const bool whole = is_whole;
  const TemporaryDirectory directory;
  save_mixed(directory.path(), writers);
  const auto complete = run_ranks(readers, [&](Communicator& c) {
    std::vector<NeededPart> needed;
    for (size_t t = kMixed.size(); t-- > 0;) {
      if (t == 2 && !whole) continue;  // a tensor that nobody needs
      needed.push_back(
          {t, whole ? Range{0, kMixed[t].count()} : share_of(kMixed[t], c.rank(), c.world_size())});
    }
    return int(is_complete(needed, Checkpoint::open(directory.path()), c));
  });
  CAPTURE(writers, readers, whole);
  CHECK(complete == std::vector<int>(size_t(readers), 1));
}

TEST_CASE("no rank goes on from a checkpoint of which a byte has changed", "[train]") {
  const int world_size = GENERATE(1, 3), damaged = GENERATE(0, 1);
  const TemporaryDirectory directory;
  const auto config = [&](int ranks) {
    return golden_config(
        "gpt2-tiny", 1,
        {"checkpoint.dir=" + directory.path(), fmt::format("train.micro_batch={}", 6 / ranks)});
  };
  run_ranks(2, [&](Communicator& c) { return train_part(config(2), c, 1); });
  const std::string path =
      directory / fmt::format("step-00000001/shard-{:05}-of-00002.bin", damaged);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(1000);
    const int byte = file.get();
    file.seekp(1000);
    file.put(char(byte ^ 4));
  }
  std::atomic<int> resumed = 0;
  const RunConfig now = config(world_size);
  const Caught error = error_of([&] {
    run_ranks(world_size, [&](Communicator& c) {
      Backend backend = make_backend(now.train, world_size);
      Trainer trainer(now, c, backend);
      resumed += int(resume_state(trainer, c, now, {}));
      return 0;
    });
  });
  CAPTURE(world_size, error.message);
  CHECK(error.kind == ErrorKind::kCorrupt);
  CHECK(error.says(path));
  CHECK(error.says("remove " + directory.path() + "/step-00000001 to resume"));
  CHECK(resumed == 0);
}

}  // namespace gxp
