// Saves and conversions on disks that fail.
#include <cerrno>
#include <functional>

#include "lib/ckpt/native/checkpoint.h"
#include "tests/catch.h"
#include "tests/ckpt/small_checkpoints.h"
#include "tests/ckpt/system_faults.h"

namespace gxp {
namespace {

using Names = std::vector<std::string>;

// act() again and again, with one more call to the disk each time before one fails, until none
// does; look() after each. Returns how often one failed.
int with_each_call_failing(const std::string& directory, const std::function<void()>& act,
                           const std::function<void()>& look) {
  const int cause = GENERATE(EIO, ENOSPC);
  for (int call = 0;; ++call) {
    Caught caught;
    bool failed = false;
    {
      const FailingDisk disk(directory, cause, call);
      caught = error_of(act);
      failed = disk.has_failed();
    }
    CAPTURE(call, cause, caught.message);
    if (!caught.message.empty()) {
      CHECK(failed);
      CHECK(caught.kind == ErrorKind::kIo);
      CHECK_THAT(caught.message, Catch::Contains(system_text(cause)) && Catch::Contains(directory));
    }
    look();
    if (!failed) return call;
  }
}

}  // namespace

TEST_CASE("a save to a disk that fails at any call leaves what was there, or its whole result",
          "[ckpt]") {
  const TemporaryDirectory dir;
  save_step(dir.path(), 1, 2);
  uint64_t step = 1;
  const int calls = with_each_call_failing(
      dir.path(), [&] { save_step(dir.path(), ++step, 2); },
      [&] {
        CHECK(complete_steps(dir.path()).front() == 1);
        CHECK_NOTHROW(Checkpoint::open(dir.path()).verify());
      });
  CHECK(calls > 8);
  CHECK(complete_steps(dir.path()).back() == step);
}

TEST_CASE("a conversion to a disk that fails at any call leaves what was there, or its result",
          "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string format = GENERATE("gxp", "safetensors");
  write_small(format, dir / "out", false);
  const auto whole = digests(read_checkpoint(dir / "out"));
  const int calls = with_each_call_failing(
      dir.path(), [&] { write_small(format, dir / "out", true); },
      [&] {
        CHECK(list(dir.path()) == Names{"out"});
        CHECK(digests(read_checkpoint(dir / "out")) == whole);
      });
  CHECK(calls > 5);
}

TEST_CASE("writes that the system cuts short lose nothing", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string format = GENERATE("gxp", "safetensors");
  const ShortWrites here;
  write_small(format, dir / "out", false);
  CHECK_NOTHROW(find_format(format).read(dir / "out"));
  if (format == "gxp") CHECK_NOTHROW(Checkpoint::open(dir / "out").verify());
}

}  // namespace gxp
