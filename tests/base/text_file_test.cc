#include "lib/base/text_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

std::string complaint_about(const std::string& path, size_t limit = 100) {
  try {
    return read_text_file(path, limit, "sample");
  } catch (const Error& error) {
    CHECK(error.kind() ==
          (contains(error.what(), "it has more") ? ErrorKind::kCorrupt : ErrorKind::kIo));
    return error.what();
  }
}

}  // namespace

TEST_CASE("a text file is read as a whole, through links, up to its limit", "[base]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "text";
  std::ofstream(path) << std::string(100, 'x');
  std::filesystem::create_symlink("text", directory / "link");
  CHECK(read_text_file(directory / "link", 100) == std::string(100, 'x'));
  CHECK(complaint_about(path, 99) ==
        "read sample " + path + ": it has more than 99 B; is it the right file?");
}

TEST_CASE("what is no regular file is refused at once", "[base]") {
  const TemporaryDirectory directory;
  const std::string pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(complaint_about(pipe) ==
        "read sample " + pipe + ": it is a pipe, not a regular file; copy its contents to one");
  CHECK(contains(complaint_about("/dev/zero"), "/dev/zero: it is a device, not a regular file"));
  CHECK(complaint_about("/") == "read sample /: Is a directory");
  CHECK(complaint_about(directory / "none") ==
        "read sample " + std::string(directory / "none") + ": No such file or directory");
}

}  // namespace gxp
