#include "lib/base/host_caches.h"

#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

using namespace gxp;

TEST_CASE("caches are read from the system's files", "[base]") {
  const TemporaryDirectory directory;
  const auto add = [&](const std::string& index, int level, const char* type, const char* size) {
    const std::filesystem::path cache = directory / index;
    std::filesystem::create_directories(cache);
    std::ofstream(cache / "level") << level;
    std::ofstream(cache / "type") << type;
    std::ofstream(cache / "size") << size;
  };
  add("index0", 1, "Data", "64K");
  add("index1", 1, "Instruction", "32K");
  add("index2", 2, "Unified", "1M");
  CHECK(read_caches(directory / "").l1_bytes == 64 << 10);
  CHECK(read_caches(directory / "").l2_bytes == 1 << 20);
}
