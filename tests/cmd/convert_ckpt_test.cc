// gxp convert-ckpt's exit codes for paths that the system refuses and for what it must not replace.
#include <unistd.h>

#include <filesystem>

#include "tests/catch.h"
#include "tests/ckpt/samples.h"
#include "tests/cmd/golden_run.h"
#include "tests/cmd/run_gxp.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

const std::string kModel = GXP_TEST_DATA "/ckpt/hf_gpt2";

void check_code(const std::vector<std::string>& arguments, int code, const std::string& words) {
  std::vector<std::string> all = {"convert-ckpt"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Outcome outcome = run_gxp(all);
  CAPTURE(arguments, outcome.err);
  CHECK(outcome.code == code);
  CHECK_THAT(outcome.err, Contains(words));
}

}  // namespace

TEST_CASE("a path that the system refuses ends convert-ckpt with code 4", "[cmd]") {
  const TemporaryDirectory dir;
  fs::create_symlink("loop", dir / "loop");
  const std::string endless = dir / std::string(300, 'x');
  check_code({dir / "loop", "--inspect"}, 4, "symbolic links");
  check_code({endless, "--inspect"}, 4, "too long");
  check_code({kModel, dir / "loop/out", "--to", "gxp"}, 4, "symbolic links");
  check_code({kModel, endless, "--to", "gxp", "--force"}, 4, "too long");
}

TEST_CASE("convert-ckpt --force keeps a directory with notes in it, with code 2", "[cmd]") {
  const TemporaryDirectory dir;
  check_code({kModel, dir / "out", "--to", "gxp"}, 0, "");
  write_bytes(dir / "out/notes.txt", "mine");
  check_code({kModel, dir / "out", "--to", "safetensors", "--force"}, 2, "notes.txt");
  CHECK(read_bytes(dir / "out/notes.txt") == "mine");
  fs::remove(dir / "out/notes.txt");
  check_code({kModel, dir / "out", "--to", "safetensors", "--force"}, 0, "");
}

TEST_CASE("ranks that cannot be started for want of /proc are no bug", "[cmd]") {
  const std::string isolate = ::geteuid() == 0 ? "unshare -m" : "unshare -rm";
  const auto without_proc = [&](const std::string& command) {
    return Process({"sh", "-c", isolate + " sh -c 'umount -l /proc && " + command + "'"}).end();
  };
  if (without_proc("true").code != 0) {
    WARN("skipped: this user may not unmount /proc in a mount namespace of its own");
    return;
  }
  const GoldenRun run;
  const Outcome outcome =
      without_proc(std::string(GXP_BINARY) + " train " + run.path("run.toml") + " --nproc 2");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("/proc/self/exe") && Contains("No such file"));
}

}  // namespace gxp
