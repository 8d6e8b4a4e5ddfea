#include "lib/ckpt/native/unchanged_file.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/ckpt/native/checkpoint.h"
#include "tests/catch.h"
#include "tests/ckpt/small_checkpoints.h"
#include "tests/ckpt/system_faults.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

const std::string kFile = "/shard-00000-of-00001.bin";

bool are_one_file(const std::string& a, const std::string& b) { return fs::equivalent(a, b); }

// One that does not hold what save_step() writes.
std::string save_other(const std::string& dir, uint64_t step) {
  const std::vector<float> values(kTensor.count(), float(step));
  CheckpointWriter writer(dir, {step, 0, 1});
  writer.add(kTensor, 0, memory_of(values));
  const FilePart part = writer.finish();
  return publish_checkpoint(dir, std::span(&part, 1), step_info(step, 1), {});
}

}  // namespace

TEST_CASE("a file that does not change from save to save is on the disk once", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string first = save_step(dir.path(), 1), second = save_step(dir.path(), 2);
  CHECK(are_one_file(first + kFile, second + kFile));
  const std::string other = save_other(dir.path(), 3), last = save_step(dir.path(), 4);
  CHECK_FALSE(are_one_file(other + kFile, second + kFile));
  CHECK_FALSE(are_one_file(last + kFile, second + kFile));  // only the newest is looked at
  CHECK(list(second) == std::vector<std::string>{"manifest.json", "shard-00000-of-00001.bin"});
  for (const std::string& step : {first, second, other, last})
    CHECK_NOTHROW(Checkpoint::open(step).verify());
}

TEST_CASE("a checkpoint that goes takes nothing from one that shares its files", "[ckpt]") {
  const TemporaryDirectory dir;
  save_step(dir.path(), 1, 2);
  const std::string second = save_step(dir.path(), 2, 2, {1});
  CHECK(list(dir.path()) == std::vector<std::string>{"step-00000002"});
  CHECK_NOTHROW(Checkpoint::open(second).verify());
  const std::string again = save_step(dir.path(), 2, 2);  // of itself
  CHECK(fs::hard_link_count(again + "/shard-00001-of-00002.bin") == 1);
  CHECK_NOTHROW(Checkpoint::open(again).verify());
}

TEST_CASE("a file that is damaged or a link is not taken over", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string first = save_step(dir.path(), 1);
  const bool damaged = GENERATE(true, false);
  if (damaged) {
    write_bytes(first + kFile, std::string(kTensor.bytes(), 'x'));
  } else {
    fs::rename(first + kFile, dir / "elsewhere");
    fs::create_symlink(dir / "elsewhere", first + kFile);
  }
  const std::string second = save_step(dir.path(), 2);
  CHECK(fs::is_regular_file(fs::symlink_status(second + kFile)));
  CHECK_FALSE(are_one_file(first + kFile, second + kFile));
  CHECK(list(second).size() == 2);
  CHECK_NOTHROW(Checkpoint::open(second).verify());
}

TEST_CASE("where files get no second name, both checkpoints have their own", "[ckpt]") {
  const NoLinks here;
  const TemporaryDirectory dir;
  const std::string first = save_step(dir.path(), 1), second = save_step(dir.path(), 2);
  CHECK_FALSE(are_one_file(first + kFile, second + kFile));
  CHECK_NOTHROW(Checkpoint::open(second).verify());
}

TEST_CASE("a save that is killed as it shares a file leaves the older checkpoint", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string first = save_step(dir.path(), 1);
  const pid_t child = ::fork();
  if (child == 0) {
    die_at_rename(0);
    save_step(dir.path(), 2);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == kDiedAtRename);
  CHECK(complete_steps(dir.path()) == std::vector<uint64_t>{1});
  CHECK(list(dir / ".step-00000002.partial").size() == 2);
  CHECK_NOTHROW(Checkpoint::open(first).verify());
  save_step(dir.path(), 3);
  CHECK(list(dir.path()) == std::vector<std::string>{"step-00000001", "step-00000003"});
}

}  // namespace gxp
