#include "lib/zero/offload/offload_store.h"

#include <sys/statvfs.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "lib/base/error.h"
#include "tests/catch.h"

namespace gxp {
namespace {

const std::string kDirectory = std::filesystem::temp_directory_path().string();
constexpr uint64_t kBytes = 5 << 20;

std::unique_ptr<OffloadStore> make_store(const std::string& kind) {
  static const std::unique_ptr<Device> device = make_cpu_device();
  static const std::unique_ptr<Stream> stream = device->make_stream("offload");
  if (kind == "memory") return make_memory_store(*device, *stream, kBytes);
  return make_file_store({kDirectory, "a test's bytes", Choice<OffloadIo>(kind)}, kBytes);
}

struct Free {
  void operator()(std::byte* data) const { std::free(data); }
};

// Page-aligned memory, and a slice of it that need not be.
class Pages {
 public:
  explicit Pages(size_t skip = 0) : skip_(skip) {
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, kBytes + 4096)));
  }
  [[nodiscard]] Memory slice(size_t bytes) const { return {data_.get() + skip_, bytes}; }

 private:
  size_t skip_;
  std::unique_ptr<std::byte, Free> data_;
};

void fill(Memory memory, int seed) {
  for (size_t i = 0; i < memory.bytes; ++i) memory.data[i] = std::byte((i * 131 + seed) >> 3);
}

bool holds(Memory memory, int seed) {
  for (size_t i = 0; i < memory.bytes; ++i)
    if (memory.data[i] != std::byte((i * 131 + seed) >> 3)) return false;
  return true;
}

TEST_CASE("a store gives back what was written, wherever it begins and however long it is",
          "[zero]") {
  const std::string kind = GENERATE("memory", "auto", "pread");
  const uint64_t offset = GENERATE(0, 1, 4096, 8191);
  const size_t bytes = GENERATE(0, 1, 4096, 100000, 3 << 20);
  const size_t skip = GENERATE(0, 64);
  CAPTURE(kind, offset, bytes, skip);
  const auto store = make_store(kind);
  const Pages in(skip);
  const Pages out(skip);
  fill(in.slice(bytes), 7);
  const Transfer written{offset, in.slice(bytes)};
  store->write({&written, 1});
  const Transfer read{offset, out.slice(bytes)};
  store->read({&read, 1});
  CHECK(holds(out.slice(bytes), 7));
}

TEST_CASE("what was not written is zero, and its neighbours do not change it", "[zero]") {
  const std::string kind = GENERATE("memory", "auto", "pread");
  const auto store = make_store(kind);
  const Pages in;
  fill(in.slice(10), 3);
  const Transfer written{5000, in.slice(10)};
  store->write({&written, 1});
  const Pages out;
  const Transfer all{0, out.slice(kBytes)};
  store->read({&all, 1});
  size_t zeros = 0;
  for (size_t i = 0; i < kBytes; ++i) zeros += out.slice(kBytes).data[i] == std::byte{0};
  CHECK(zeros >= kBytes - 10);
}

TEST_CASE("several pieces are copied in one call", "[zero]") {
  const std::string kind = GENERATE("memory", "auto", "pread");
  const auto store = make_store(kind);
  const Pages first, second;
  fill(first.slice(1 << 20), 1);
  fill(second.slice(2 << 20), 2);
  const std::vector<Transfer> pieces = {{0, first.slice(1 << 20)},
                                        {1 << 20, second.slice(2 << 20)}};
  store->write(pieces);
  const Pages one, two;
  const std::vector<Transfer> back = {{1 << 20, two.slice(2 << 20)}, {0, one.slice(1 << 20)}};
  store->read(back);
  CHECK(holds(one.slice(1 << 20), 1));
  CHECK(holds(two.slice(2 << 20), 2));
}

TEST_CASE("a file says how it is read and written", "[zero]") {
  CHECK_THAT(make_store("pread")->description(), Catch::Contains("pread and pwrite"));
  CHECK_THAT(make_store("auto")->description(), Catch::Contains(kDirectory));
  CHECK_THAT(make_store("memory")->description(), Catch::Contains("host memory"));
}

TEST_CASE("a disk without the room is found before anything is written", "[zero]") {
  struct statvfs disk {};
  REQUIRE(::statvfs(kDirectory.c_str(), &disk) == 0);
  const uint64_t bytes = (uint64_t{disk.f_bavail} * disk.f_frsize / 4096 + (1 << 20)) * 4096;
  CHECK_THROWS_WITH(make_file_store({kDirectory, "rank 3's state"}, bytes),
                    Catch::Contains("rank 3's state to " + kDirectory) &&
                        Catch::Contains("are free") && Catch::Contains("offload.ratio"));
}

TEST_CASE("a directory that is not there is named", "[zero]") {
  CHECK_THROWS_WITH(make_file_store({"/no/such/place", "rank 0's state"}, 4096),
                    Catch::Contains("/no/such/place") && Catch::Contains("No such file"));
}

}  // namespace
}  // namespace gxp
