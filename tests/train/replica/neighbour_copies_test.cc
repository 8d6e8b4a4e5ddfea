#include "lib/train/replica/neighbour_copies.h"

#include <filesystem>

#include "lib/ckpt/native/step_directory.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks.h"
#include "tests/temporary_directory.h"

namespace gxp {

TEST_CASE("what an earlier attempt has left of later replicas is removed", "[train]") {
  namespace fs = std::filesystem;
  const TemporaryDirectory directory;
  const std::string kept = partial_path(directory.path(), 5);
  const std::string left = partial_path(directory.path(), 6);
  for (const std::string& path : {kept, left}) fs::create_directory(path);
  run_ranks(1, [&](Communicator& communicator) {
    const NeighbourCopies copies(communicator, {.directory = directory.path()}, {false}, 5, 5);
    return 0;
  });
  CHECK(fs::exists(kept));
  CHECK_FALSE(fs::exists(left));
}

}  // namespace gxp
