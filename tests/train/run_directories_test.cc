#include "lib/train/run_directories.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lib/base/error.h"
#include "lib/base/host_name.h"
#include "lib/ckpt/native/checkpoint.h"
#include "lib/ckpt/native/writer.h"
#include "lib/train/metrics.h"
#include "lib/train/rank_zero.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

CheckpointInfo info_of(uint64_t step, int world_size) {
  CheckpointInfo info;
  info.step = step;
  info.world_size = world_size;
  return info;
}

void put_file(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A checkpoint of one element.
void put_checkpoint(const std::string& dir, uint64_t step) {
  CheckpointWriter writer(dir, {.step = step, .rank = 0, .world_size = 1});
  std::vector<float> one = {1};
  writer.add({"w", Role::kWeight, StorageDType::kF32, {1}}, 0, memory_of(one));
  const FilePart part = writer.finish();
  publish_checkpoint(dir, std::span(&part, 1), info_of(step, 1), {});
}

const std::string kLine = "{\"step\":1,\"loss\":2.5}\n";

// The directories of a run in `top`.
RunDirectories in(const TemporaryDirectory& top, const std::string& more_metrics = "") {
  RunConfig config;
  config.checkpoint.dir = top / "run/ckpt";
  return directories_of(config, more_metrics);
}

// The error of claiming them; "": there is none.
std::string refusal(const RunDirectories& directories, EarlierRun request = EarlierRun::kRefuse,
                    ErrorKind kind = ErrorKind::kConfig) {
  try {
    claim_directories(directories, request);
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("records lie with the checkpoints, or where the run says", "[train]") {
  RunConfig config;
  config.checkpoint.dir = "run/ckpt";
  CHECK(directories_of(config, "").metrics == std::vector<std::string>{"run/ckpt/metrics.jsonl"});
  config.train.run_dir = "other";
  CHECK(directories_of(config, "m").metrics ==
        std::vector<std::string>{"other/metrics.jsonl", "m"});
  config.train.run_dir = config.checkpoint.dir = "";
  CHECK(directories_of(config, "").metrics.empty());
}

TEST_CASE("a run does not start over what an earlier one has left, unless it is told to",
          "[train]") {
  const TemporaryDirectory top;
  const RunDirectories directories = in(top);
  CHECK(refusal(directories).empty());
  put_checkpoint(directories.checkpoints, 20);
  put_checkpoint(directories.checkpoints, 100);
  put_file(directories.metrics[0], kLine);
  const std::string text = refusal(directories);
  CHECK(contains(text, "2 checkpoints up to step-00000100 in " + top / "run/ckpt"));
  CHECK(contains(text, " and " + directories.metrics[0]));
  CHECK(contains(text, "--resume"));
  CHECK(contains(text, "--overwrite"));
  for (const EarlierRun request : {EarlierRun::kContinue, EarlierRun::kReplace})
    CHECK(refusal(directories, request).empty());
  CHECK(complete_steps(directories.checkpoints) == std::vector<uint64_t>{20, 100});
  CHECK(content_of(directories.metrics[0]) == kLine);
}

TEST_CASE("metrics alone are not started over, and cannot be resumed from", "[train]") {
  const TemporaryDirectory top;
  const std::string file = top / "elsewhere.jsonl";
  put_file(file, kLine);
  const std::string text = refusal(in(top, file));
  CHECK(contains(text, file));
  CHECK(contains(text, "--overwrite"));
  CHECK_FALSE(contains(text, "--resume"));
}

TEST_CASE("two runs never share metrics and settings", "[train]") {
  const TemporaryDirectory top;
  RunConfig one, other;
  one.checkpoint.dir = top / "run/a";
  other.checkpoint.dir = top / "run/b";
  CHECK(directories_of(one, "").records != directories_of(other, "").records);
  one.train.run_dir = other.train.run_dir = top / "records";
  put_file(top / "records/resolved.toml",
           "[data]\ntrain = [\"text\"]\n[checkpoint]\ndir = \"" + one.checkpoint.dir + "\"\n");
  const auto request = GENERATE(EarlierRun::kRefuse, EarlierRun::kReplace);
  CHECK(refusal(directories_of(one, ""), request).empty());
  const std::string text = refusal(directories_of(other, ""), request);
  CHECK(contains(text, "the run whose checkpoints are in " + one.checkpoint.dir));
  CHECK(contains(text, "train.run_dir"));
}

TEST_CASE("a resume needs a checkpoint of gxp train, and makes no directory without one",
          "[train]") {
  const TemporaryDirectory top;
  const std::string none = refusal(in(top), EarlierRun::kContinue, ErrorKind::kIo);
  CHECK(contains(none, "resume from " + top / "run/ckpt" + ": no checkpoint of gxp train there"));
  CHECK(contains(none, "start without --resume"));
  CHECK_FALSE(fs::exists(top / "run"));
  RunConfig config;
  config.checkpoint.dir = GXP_TEST_DATA "/ckpt/hf_gpt2";
  const std::string other =
      refusal(directories_of(config, ""), EarlierRun::kContinue, ErrorKind::kIo);
  CHECK(contains(other, "it holds one of format huggingface; convert that first"));
}

TEST_CASE("a file that holds something else than metrics is never taken for them", "[train]") {
  const TemporaryDirectory top;
  const std::string file = top / "thesis.txt";
  put_file(file, GENERATE("Chapter 1\n", "{\"step\":\"x\"}\n"));
  put_checkpoint(in(top).checkpoints, 20);
  const auto request = GENERATE(EarlierRun::kContinue, EarlierRun::kReplace);
  CHECK(contains(refusal(in(top, file), request), "thesis.txt: it does not hold metrics"));
  CHECK(refusal(in(top, "/dev/full"), request).empty());
}

TEST_CASE("removing checkpoints leaves everything else in the directory", "[train]") {
  const TemporaryDirectory top;
  const std::string dir = top / "ckpt";
  put_checkpoint(dir, 3);
  put_file(dir + "/notes.txt", "keep");
  put_file(dir + "/step-00000004/no-manifest", "keep");
  put_file(dir + "/step-5/manifest.json", "keep");
  remove_checkpoints(dir);
  CHECK(complete_steps(dir).empty());
  for (const char* kept :
       {"ckpt/notes.txt", "ckpt/step-00000004/no-manifest", "ckpt/step-5/manifest.json"})
    CHECK(content_of(top / kept) == "keep");
}

TEST_CASE("a second run in a directory is refused, and the first one named", "[train]") {
  const TemporaryDirectory top;
  const RunDirectories directories = in(top);
  {
    const DirectoryClaim claim = claim_directories(directories, EarlierRun::kRefuse);
    REQUIRE(claim.locks.size() == 1);
    const std::string text = refusal(directories, EarlierRun::kReplace, ErrorKind::kIo);
    CHECK(contains(text, "use directory " + top / "run/ckpt" + ": another run is using it"));
    CHECK(contains(text, fmt::format("process {} on host ", ::getpid())));
  }
  CHECK(refusal(directories).empty());
}

TEST_CASE("a restarted job continues or replaces what it has marked, and nothing else", "[train]") {
  const auto [marked, saved, request, found] =
      GENERATE(table<std::string, bool, EarlierRun, EarlierRun>(
          {{"job a", true, EarlierRun::kReplace, EarlierRun::kContinue},
           {"job a", true, EarlierRun::kRefuse, EarlierRun::kContinue},
           {"job a", false, EarlierRun::kContinue, EarlierRun::kReplace},
           {"job a", false, EarlierRun::kRefuse, EarlierRun::kReplace},
           {"job b", true, EarlierRun::kReplace, EarlierRun::kReplace},
           {"", true, EarlierRun::kReplace, EarlierRun::kReplace},
           {"", true, EarlierRun::kContinue, EarlierRun::kContinue},
           {"", false, EarlierRun::kRefuse, EarlierRun::kRefuse}}));
  const TemporaryDirectory top;
  const RunDirectories directories = in(top);
  prepare_directory(directories.checkpoints);
  mark_directory(directories.checkpoints, {{"an earlier job"}});
  mark_directory(directories.checkpoints, marked.empty() ? JobNames{} : JobNames{{"a"}, {marked}});
  if (saved) put_checkpoint(directories.checkpoints, 3);
  CHECK(claim_directories(directories, request, {{"job a", true}, {"job b"}}).earlier == found);
  CHECK(claim_directories(directories, EarlierRun::kReplace).earlier == EarlierRun::kReplace);
}

TEST_CASE("a directory that serves twice is locked once", "[train]") {
  const TemporaryDirectory top;
  RunDirectories directories = in(top);
  directories.records = top / "run/../run/ckpt/";
  CHECK(claim_directories(directories, EarlierRun::kRefuse).locks.size() == 1);
}

TEST_CASE("a lock is neither a link nor what a stranger has written to the terminal", "[train]") {
  const TemporaryDirectory top;
  put_file(top / "linked/precious", "keep");
  fs::create_symlink(top / "linked/precious", top / "linked/.gxp.lock");
  CHECK_THROWS_WITH(DirectoryLock(top / "linked"), Catch::Contains("linked/.gxp.lock"));
  CHECK(content_of(top / "linked/precious") == "keep");
  const DirectoryLock held(top.path());
  put_file(top / ".gxp.lock", "\x1b[2J\n");
  CHECK_THROWS_WITH(DirectoryLock(top.path(), 0ms), Catch::Contains("it, ?[2J according to "));
}

TEST_CASE("only those may read a lock, and so hold it, who may write it", "[train]") {
  const TemporaryDirectory top;
  const mode_t before = ::umask(022);
  put_file(top / "old/.gxp.lock", "process 1 on host elsewhere\n");  // mode 644
  const auto mode_of = [](const std::string& path) {
    return int(fs::status(path).permissions()) & 0777;
  };
  { const DirectoryLock lock(top / "old"); }
  CHECK(mode_of(top / "old/.gxp.lock") == 0600);
  ::umask(002);  // of a group that shares its directories
  { const DirectoryLock lock(top.path()); }
  CHECK(mode_of(top / ".gxp.lock") == 0660);
  ::umask(before);
}

TEST_CASE("a holder that has ended is not named as the one who holds a lock", "[train]") {
  const TemporaryDirectory top;
  const DirectoryLock held(top.path());
  put_file(top / ".gxp.lock", fmt::format("process {} on host {}\n", INT_MAX, host_name()));
  CHECK_THROWS_WITH(DirectoryLock(top.path(), 0ms),
                    Catch::Contains("another process holds its lock") &&
                        Catch::Contains("named there, has ended"));
}

TEST_CASE("a lock whose file was removed is taken again, unless another run has come", "[train]") {
  const TemporaryDirectory top;
  DirectoryLock first(top.path());
  first.keep();
  fs::remove(top / ".gxp.lock");
  first.keep();
  CHECK_THROWS_WITH(DirectoryLock(top.path(), 0ms), Catch::Contains("another run is using it"));
  fs::remove(top / ".gxp.lock");
  const DirectoryLock second(top.path());
  CHECK_THROWS_WITH(first.keep(), Catch::Contains("another run is using it"));
}

TEST_CASE("a run's own metrics are in a file, not behind a link or in a pipe", "[train]") {
  const TemporaryDirectory top;
  fs::create_symlink(top / "absent", top / "link");
  CHECK_THROWS_WITH(MetricsFile(top / "link", 0, true), Catch::Contains("it is a link; remove it"));
  CHECK_FALSE(fs::exists(top / "absent"));
  REQUIRE(::mkfifo((top / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(MetricsFile(top / "pipe", 0, true),
                    Catch::Contains("a pipe that nobody reads"));
  CHECK_THROWS_WITH(MetricsFile(top / "pipe", 0), Catch::Contains("a pipe that nobody reads"));
  const Fd reader(::open((top / "pipe").c_str(), O_RDONLY | O_NONBLOCK));
  CHECK_THROWS_WITH(MetricsFile(top / "pipe", 0, true), Catch::Contains("not a regular file"));
  CHECK_NOTHROW(MetricsFile(top / "pipe", 0));  // the user's request
}

TEST_CASE("metrics whose file is removed are told as lost", "[train]") {
  const TemporaryDirectory top;
  MetricsFile file(top / "metrics.jsonl", 0, true);
  file.write({});
  fs::remove(top / "metrics.jsonl");
  CHECK_THROWS_WITH(file.write({}), Catch::Contains("the file was removed"));
}

TEST_CASE("what rank 0 throws, all ranks throw", "[train]") {
  const auto outcomes = run_ranks(3, [](Communicator& c) -> std::string {
    try {
      do_on_rank_zero(c, [&] { fail(ErrorKind::kCorrupt, "rank {} says so", c.rank()); });
    } catch (const Error& error) {
      return fmt::format("{}: {}", to_string(error.kind()), error.what());
    }
    return "";
  });
  CHECK(outcomes == std::vector<std::string>(3, "corrupt: rank 0 says so"));
}

}  // namespace gxp
