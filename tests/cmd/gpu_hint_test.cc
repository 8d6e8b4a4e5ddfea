// What `make build` says where an NVIDIA GPU is visible.
#include <filesystem>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {

// Of cmake/gpu_hint.sh, for a build with this line in its cache, where nvidia-smi prints `gpus`.
std::string hint(const std::string& cached, const std::string& gpus) {
  const TemporaryDirectory directory;
  make_file(directory / "CMakeCache.txt", "BUILD_TESTING:BOOL=ON\n" + cached + "\n");
  make_file(directory / "nvidia-smi", "#!/bin/sh\necho '" + gpus + "'\n");
  std::filesystem::permissions(directory / "nvidia-smi", std::filesystem::perms::owner_all);
  const std::string script = std::string(GXP_SOURCE_DIR) + "/cmake/gpu_hint.sh";
  const Outcome outcome =
      Process({"sh", "-c", "PATH=\"$1:$PATH\" exec \"$0\" \"$1\"", script, directory.path()}).end();
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
  return outcome.out;
}

}  // namespace

TEST_CASE("a build without CUDA tells of the GPU that it cannot use", "[cmd]") {
  const std::string gpu = "GPU 0: NVIDIA H100 (UUID: GPU-5cb2d9a4)";
  CHECK(hint("GXP_CUDA:BOOL=OFF", gpu) ==
        "an NVIDIA GPU is here: `PRESET=cuda make build` builds for it\n");
  CHECK(hint("GXP_CUDA:BOOL=ON", gpu) == "");
  if (!std::filesystem::exists("/dev/nvidia0"))
    CHECK(hint("GXP_CUDA:BOOL=OFF", "No devices found.") == "");
}

}  // namespace gxp
