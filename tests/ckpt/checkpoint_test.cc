#include "lib/ckpt/native/checkpoint.h"

#include <sys/mount.h>
#include <sys/resource.h>

#include <array>
#include <csignal>
#include <numeric>

#include "lib/base/hash.h"
#include "lib/ckpt/native/writer.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

const TensorInfo kMatrix{"h.0.weight", Role::kWeight, StorageDType::kF32, {7, 5}};
const TensorInfo kBias{"h.0.bias", Role::kWeight, StorageDType::kBF16, {3}};
const TensorInfo kMoment{"h.0.weight", Role::kAdamM, StorageDType::kF32, {7, 5}};
const std::vector<TensorInfo> kTensors = {kMatrix, kBias, kMoment};

// The bytes that every checkpoint of these tests holds for a tensor, whoever wrote it.
std::vector<std::byte> content_of(const TensorInfo& info) {
  std::vector<std::byte> bytes(info.bytes());
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = std::byte(17 * i + 31 * size_t(info.role) + info.name.size());
  return bytes;
}

// Rank r's elements of `count`: near-equal parts, of which some are empty where ranks are many.
std::pair<uint64_t, uint64_t> share(uint64_t count, int rank, int world_size) {
  return {count * uint64_t(rank) / uint64_t(world_size),
          count * uint64_t(rank + 1) / uint64_t(world_size)};
}

FilePart write_part(const std::string& dir, const WriterRank& rank) {
  CheckpointWriter writer(dir, rank);
  for (const TensorInfo& info : kTensors) {
    const auto bytes = content_of(info);
    const auto [begin, end] = share(info.count(), rank.rank, rank.world_size);
    const size_t element = size_of(info.dtype);
    writer.add(info, begin, memory_of(bytes).slice(begin * element, (end - begin) * element));
  }
  return parse_file_part(to_json(writer.finish()));  // as it travels to rank 0
}

CheckpointInfo info_of(uint64_t step, int world_size) {
  return {.step = step,
          .samples_consumed = 8 * step,
          .world_size = world_size,
          .strategy = "zero1",
          .config = {{"model.family", "\"gpt2\""}, {"model.heads", "3"}},
          .state = {{"lr", "0.001"}}};
}

std::string save(const std::string& dir, uint64_t step, int world_size = 1,
                 const Retention& retention = {}) {
  std::vector<FilePart> parts;
  for (int rank = 0; rank < world_size; ++rank)
    parts.push_back(write_part(dir, {step, rank, world_size}));
  return publish_checkpoint(dir, parts, info_of(step, world_size), retention);
}

// What `world_size` ranks read, each its share, put together.
std::vector<std::byte> read_shares(const Checkpoint& checkpoint, const TensorInfo& info,
                                   int world_size) {
  std::vector<std::byte> bytes(info.bytes());
  const size_t element = size_of(info.dtype);
  for (int rank = 0; rank < world_size; ++rank) {
    const auto [begin, end] = share(info.count(), rank, world_size);
    checkpoint.read(info.name, info.role, begin,
                    memory_of(bytes).slice(begin * element, (end - begin) * element));
  }
  return bytes;
}

void flip(const std::string& path, size_t position) {
  std::string bytes = read_bytes(path);
  bytes.at(position) = char(bytes[position] ^ 1);
  write_bytes(path, bytes);
}

// The manifest's text with `from` replaced by `to`, under a hash that fits: a forger can do that.
std::string forge(const std::string& manifest, const std::string& from, const std::string& to) {
  const size_t at = manifest.find(from);
  REQUIRE(at != std::string::npos);
  std::string text = manifest;
  text.replace(at, from.size(), to);
  const size_t body = text.rfind(",\n\"self_xxh3_128\"");
  const auto hash = hash_hex(std::as_bytes(std::span(text.data(), body)));
  return text.substr(0, body) + ",\n\"self_xxh3_128\":\"" + hash + "\"}\n";
}

// While it lives, files of this process end at `bytes`: a stand-in for a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_action_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit = {bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_action_);
  }

 private:
  rlimit old_ = {};
  void (*old_action_)(int);
};

}  // namespace

TEST_CASE("what any world size wrote, any other reads bit by bit", "[ckpt]") {
  const TemporaryDirectory dir;
  const int writers = GENERATE(1, 2, 3, 5, 8);
  save(dir.path(), 10, writers);
  const auto checkpoint = Checkpoint::open(dir.path());
  checkpoint.verify();
  for (const int readers : {1, 2, 3, 5, 8}) {
    for (const TensorInfo& info : kTensors)
      CHECK(read_shares(checkpoint, info, readers) == content_of(info));
  }
}

TEST_CASE("resharding 1 to 2 to 3 ranks keeps every bit", "[ckpt]") {
  const TemporaryDirectory dir;
  save(dir.path(), 1, 1);
  for (const int world_size : {2, 3}) {
    const auto old = Checkpoint::open(dir.path());
    const uint64_t step = old.manifest().info.step + 1;
    std::vector<FilePart> parts;
    for (int rank = 0; rank < world_size; ++rank) {
      CheckpointWriter writer(dir.path(), {step, rank, world_size});
      const auto [begin, end] = share(kMatrix.count(), rank, world_size);
      std::vector<float> values(end - begin);
      old.read(kMatrix.name, kMatrix.role, begin, memory_of(values));
      writer.add(kMatrix, begin, memory_of(std::as_const(values)));
      parts.push_back(writer.finish());
    }
    publish_checkpoint(dir.path(), parts, info_of(step, world_size), {});
  }
  const auto last = Checkpoint::open(dir.path());
  CHECK(last.manifest().info.world_size == 3);
  CHECK(read_shares(last, kMatrix, 1) == content_of(kMatrix));
}

TEST_CASE("the manifest keeps what the trainer said", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string path = save(dir.path(), 123456789, 2);
  CHECK(path == dir / "step-123456789");
  CHECK(list(path) == std::vector<std::string>{"manifest.json", "shard-00000-of-00002.bin",
                                               "shard-00001-of-00002.bin"});
  const auto info = Checkpoint::open(path).manifest().info;
  const auto expected = info_of(123456789, 2);
  CHECK(info.step == expected.step);
  CHECK(info.samples_consumed == expected.samples_consumed);
  CHECK(info.world_size == 2);
  CHECK(info.strategy == "zero1");
  CHECK(info.config == expected.config);
  CHECK(info.state == expected.state);
}

TEST_CASE("settings with bytes that are no UTF-8 do not stop a save", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto part = write_part(dir.path(), {1, 0, 1});
  CheckpointInfo info = info_of(1, 1);
  info.config = {{"data.train", "[\"caf\xe9\"]"}};
  publish_checkpoint(dir.path(), std::span(&part, 1), info, {});
  CHECK(Checkpoint::open(dir.path()).manifest().info.config[0].second == "[\"caf\ufffd\"]");
}

TEST_CASE("version 1 as docs/FORMAT.md shows it is read for ever", "[ckpt]") {
  const std::string golden = GXP_TEST_DATA "/ckpt/gxp_v1";
  const std::string document = read_bytes(GXP_SOURCE_DIR "/docs/FORMAT.md");
  CHECK_THAT(document,
             Catch::Matchers::Contains(read_bytes(golden + "/step-00000010/manifest.json")));
  const auto checkpoint = Checkpoint::open(golden);
  checkpoint.verify();
  std::array<float, 3> values = {};
  checkpoint.read("w", Role::kWeight, 2, memory_of(values));
  CHECK(values == std::array<float, 3>{3, 4, 5});
  CHECK(checkpoint.manifest().info.samples_consumed == 80);
}

TEST_CASE("a flipped bit anywhere in a data file is found", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string file = save(dir.path(), 1, 2) + "/shard-00001-of-00002.bin";
  const auto checkpoint = Checkpoint::open(dir.path());
  const std::string hash = checkpoint.manifest().files[1].hash;
  for (size_t i = 0; i < fs::file_size(file); i += 13) {
    flip(file, i);
    const auto [kind, text] = error_of([&] { checkpoint.verify(); });
    CHECK(kind == ErrorKind::kCorrupt);
    CHECK_THAT(text, Catch::Matchers::Contains(file) &&
                         Catch::Matchers::Contains("expected " + hash + ", found "));
    CHECK_NOTHROW(checkpoint.verify(0, 2));  // the other rank's half
    flip(file, i);
  }
  CHECK_NOTHROW(checkpoint.verify());
}

TEST_CASE("a flipped bit anywhere in the manifest is found", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string file = save(dir.path(), 1) + "/manifest.json";
  const std::string whole = read_bytes(file);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = char(changed[i] ^ (1 << (i % 8)));
    const auto [kind, text] = error_of([&] { parse_manifest(changed, file); });
    REQUIRE(kind == ErrorKind::kCorrupt);
    REQUIRE_THAT(text, Catch::Matchers::Contains(file));
  }
}

TEST_CASE("a truncated or missing file is found at once", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string path = save(dir.path(), 1);
  const std::string data = path + "/shard-00000-of-00001.bin";
  fs::resize_file(data, fs::file_size(data) - 1);
  CHECK(error_of([&] { Checkpoint::open(path); }).kind == ErrorKind::kCorrupt);
  fs::remove(data);
  CHECK(error_of([&] { Checkpoint::open(path); }).kind == ErrorKind::kIo);
  const std::string manifest = read_bytes(path + "/manifest.json");
  for (size_t length = 0; length < manifest.size(); length += 101) {
    write_bytes(path + "/manifest.json", manifest.substr(0, length));
    CHECK(error_of([&] { Checkpoint::open(path); }).kind == ErrorKind::kCorrupt);
  }
}

TEST_CASE("a forged manifest is refused, whatever its hash", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string good = read_bytes(save(dir.path(), 1) + "/manifest.json");
  const std::vector<std::array<std::string, 3>> cases = {
      {"gxp-checkpoint", "other", "this gxp reads"},
      {"\"version\":1", "\"version\":2", "version 2"},
      {"\"step\":1", "\"step\":-1", "a whole number"},
      {"\"step\":1", "\"stop\":1", "'step' is missing"},
      {"\"step\":1", "\"step\":1,\"step\":1", "occurs twice"},
      {"\"world_size\":1", "\"world_size\":4294967297", "world_size 4294967297 is not a number"},
      {"\"world_size\":1", "\"world_size\":0", "world_size 0 is not a number of ranks"},
      {"[\"lr\",\"0.001\"]", "[\"lr\"]", "pair"},
      {"\"h.0.bias\"", "\"\"", "name is empty"},
      {"\"h.0.bias\"", "\"a\\u0000\"", "holds a NUL"},
      {"shard-00000-of-00001.bin", "../shard", "not the name of a file"},
      {"shard-00000-of-00001.bin", "", "not the name of a file"},
      {"\"adam_m\"", "\"weight\"", "occurs twice"},
      {"\"adam_m\"", "\"adam_x\"", "role 'adam_x'"},
      {"\"BF16\"", "\"F7\"", "dtype 'F7'"},
      {"[7,5]", "[7,6]", "are in no file"},
      {"[7,5]", "[7,4]", "a piece has first element"},
      {"[7,5]", "[4294967296,4294967296]", "exceeds 64 bits"},
      {"[[0,0,0,35]]", "[[1,0,0,35]]", "data file 1 is not one of the 1"},
      {"[[0,0,0,35]]", "[[0,200,0,35]]", "reach beyond"},
      {"[[0,0,0,35]]", "[[0,18446744073709551615,0,35]]", "reach beyond"},
      {"[[0,0,0,35]]", "[[0,0,0,18446744073709551615]]", "a piece has first element"},
      {"[[0,0,0,35]]", "[[0,0,0,20],[0,80,19,16]]", "a piece has first element"},
      {"[[0,0,0,35]]", "[[0,0,0,20],[0,80,21,14]]", "a piece has first element"},
      {"[[0,0,0,35]]", "[[0,0,0,0]]", "a piece has first element"},
      {"[[0,0,0,35]]", "[[0,0,35]]", "a piece is not"},
      {"[[0,0,0,35]]", "[]", "are in no file"},
      {"[[0,146,0,35]]", "[[0,0,0,35]]", "belong to two pieces"},
      {"[[0,146,0,35]]", "[[0,142,0,35]]", "belong to two pieces"},
      {"[[0,140,0,3]]", "[[0,142,0,2]]", "are in no file"},
      {"\"bytes\":286", "\"bytes\":287",
       "bytes 286 to 287 of shard-00000-of-00001.bin belong to no"},
  };
  for (const auto& [from, to, words] : cases) {
    CAPTURE(from, to);
    const auto [kind, text] = error_of([&] { parse_manifest(forge(good, from, to), "M"); });
    CHECK(kind == ErrorKind::kCorrupt);
    CHECK_THAT(text, Catch::Matchers::Contains(words));
  }
}

TEST_CASE("only the newest checkpoints are kept, and always the one just written", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const uint64_t step : {9, 10, 100}) save(dir.path(), step, 1, {2});
  CHECK(list(dir.path()) == std::vector<std::string>{"step-00000010", "step-00000100"});
  save(dir.path(), 20, 1, {1});  // after a resume from an older step
  CHECK(list(dir.path()) == std::vector<std::string>{"step-00000020"});
  save(dir.path(), 30, 1, {0});
  CHECK(list(dir.path()) == std::vector<std::string>{"step-00000020", "step-00000030"});
}

TEST_CASE("checkpoints of every k-th step stay besides the newest", "[ckpt]") {
  const TemporaryDirectory dir;
  for (uint64_t step = 1; step <= 7; ++step)
    save(dir.path(), step, 1, {.newest = 1, .multiples_of = 3});
  CHECK(complete_steps(dir.path()) == std::vector<uint64_t>{3, 6, 7});
}

TEST_CASE("a step that is written again replaces the old one", "[ckpt]") {
  const TemporaryDirectory dir;
  save(dir.path(), 5, 3);
  save(dir.path(), 5, 1);
  CHECK(list(dir.path()) == std::vector<std::string>{"step-00000005"});
  CHECK(Checkpoint::open(dir.path()).manifest().info.world_size == 1);
}

TEST_CASE("what a killed save left is ignored by readers and removed by the next save", "[ckpt]") {
  const TemporaryDirectory dir;
  save(dir.path(), 1);
  write_part(dir.path(), {2, 1, 2});            // rank 0 of 2 never came
  fs::create_directory(dir / "step-00000003");  // without a manifest: not complete
  CHECK(Checkpoint::open(dir.path()).manifest().info.step == 1);
  save(dir.path(), 2);
  const auto names = list(dir.path());
  CHECK(names == std::vector<std::string>{"step-00000001", "step-00000002", "step-00000003"});
  CHECK(list(dir / "step-00000002").size() == 2);  // nothing of the killed rank 1
}

TEST_CASE("a directory without a complete checkpoint is an error that says so", "[ckpt]") {
  const TemporaryDirectory dir;
  CHECK(complete_steps(dir / "absent").empty());
  CHECK_THAT(error_of([&] { Checkpoint::open(dir / "absent"); }).message,
             Catch::Matchers::Contains("no such directory"));
  CHECK_THAT(error_of([&] { Checkpoint::open(dir.path()); }).message,
             Catch::Matchers::Contains("no complete checkpoint"));
}

TEST_CASE("parts that miss or repeat elements are not published", "[ckpt]") {
  const TemporaryDirectory dir;
  save(dir.path(), 1);
  const bool repeat = GENERATE(true, false);
  const auto part = write_part(dir.path(), {2, 0, 2});
  std::vector<FilePart> parts = {part};
  if (repeat) parts.push_back(part);
  CHECK(error_of([&] { publish_checkpoint(dir.path(), parts, info_of(2, 2), {1}); }).kind ==
        ErrorKind::kInternal);
  CHECK(list(dir.path()) == std::vector<std::string>{"step-00000001"});
}

TEST_CASE("an unwritable directory is named with the system's reason", "[ckpt]") {
  const TemporaryDirectory dir;
  write_bytes(dir / "file", "");
  const auto [kind, text] = error_of([&] { CheckpointWriter(dir / "file/sub", {1, 0, 1}); });
  CHECK(kind == ErrorKind::kIo);
  CHECK_THAT(text, Catch::Matchers::Contains(dir / "file/sub") &&
                       Catch::Matchers::Contains("Not a directory"));
}

TEST_CASE("a write that fails leaves the older checkpoints and nothing else", "[ckpt]") {
  const TemporaryDirectory dir;
  save(dir.path(), 1, 2);
  {
    const FileSizeLimit limit(100);
    const auto [kind, text] = error_of([&] { save(dir.path(), 2, 2); });
    CHECK(kind == ErrorKind::kIo);
    CHECK_THAT(text, Catch::Matchers::Contains("shard-00000-of-00002.bin") &&
                         Catch::Matchers::Contains("bytes") &&
                         Catch::Matchers::Contains("File too large"));
  }
  CHECK(list(dir.path()) == std::vector<std::string>{"step-00000001"});
  CHECK_NOTHROW(Checkpoint::open(dir.path()).verify());
}

TEST_CASE("a full disk leaves the older checkpoints and nothing else", "[ckpt]") {
  const TemporaryDirectory dir;
  if (::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    WARN("skipped: no right to mount a tmpfs");
    return;
  }
  const auto unmount = std::shared_ptr<void>(nullptr, [&](void*) { ::umount(dir.path().c_str()); });
  save(dir.path(), 1);
  const std::vector<float> large(size_t{1} << 15);
  const auto [kind, text] = error_of([&] {
    CheckpointWriter writer(dir.path(), {2, 0, 1});
    writer.add({"large", Role::kWeight, StorageDType::kF32, {large.size()}}, 0, memory_of(large));
  });
  CHECK(kind == ErrorKind::kIo);
  CHECK_THAT(text, Catch::Matchers::Contains("No space left on device") &&
                       Catch::Matchers::Contains("131072 bytes"));
  CHECK(list(dir.path()) == std::vector<std::string>{"step-00000001"});
}

TEST_CASE("a writer that does not finish leaves nothing", "[ckpt]") {
  const TemporaryDirectory dir;
  { const CheckpointWriter writer(dir.path(), {1, 0, 1}); }
  CHECK(list(dir.path()).empty());
}

TEST_CASE("reading more than a tensor has is an error", "[ckpt]") {
  const TemporaryDirectory dir;
  save(dir.path(), 1);
  const auto checkpoint = Checkpoint::open(dir.path());
  std::vector<float> values(6);
  CHECK_THROWS_AS(checkpoint.read("h.0.weight", Role::kWeight, 30, memory_of(values)), Error);
  CHECK_THROWS_AS(checkpoint.read("h.0.weight", Role::kWeight, UINT64_MAX, memory_of(values)),
                  Error);
  CHECK_THROWS_AS(checkpoint.read("h.1.weight", Role::kWeight, 0, memory_of(values)), Error);
}

}  // namespace gxp
