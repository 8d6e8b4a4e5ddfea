#include "lib/net/launch/host_memory.h"

#include <sys/fsuid.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace gxp {

TEST_CASE("a launcher's memory goes with it, and so does that of one that was killed", "[net]") {
  namespace fs = std::filesystem;
  const TemporaryDirectory dir;
  const std::string left = dir / "gxp-replica-left", other = dir / "other";
  fs::create_directories(left + "/deep");
  fs::create_directory(other);
  std::string path;
  {
    const HostMemory mine(dir.path());
    path = mine.path();
    CHECK(fs::status(path).permissions() == fs::perms::owner_all);
    CHECK_FALSE(fs::exists(left));
    const HostMemory another(dir.path());
    CHECK(fs::exists(path));
    CHECK(another.path() != path);
  }
  CHECK_FALSE(fs::exists(path));
  CHECK(fs::exists(other));
  CHECK_THROWS_AS(HostMemory(dir / "missing"), Error);
}

TEST_CASE("a launcher ends where a directory's owner is another user, as on some file servers",
          "[net]") {
  if (geteuid() != 0) {
    WARN("skipped: this user may not make files of another one");
    return;
  }
  namespace fs = std::filesystem;
  const TemporaryDirectory dir;
  fs::permissions(dir.path(), fs::perms::all);
  setfsuid(1);
  CHECK_THROWS_WITH(HostMemory(dir.path()), Catch::Contains("belongs to another user"));
  setfsuid(0);
  CHECK(fs::is_empty(dir.path()));
}

}  // namespace gxp
