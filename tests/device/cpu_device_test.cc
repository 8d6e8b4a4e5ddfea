#include <algorithm>

#include "lib/device/device.h"
#include "tests/catch.h"

namespace gxp {

TEST_CASE("CPU memory is zeroed, writable to its last byte and aligned") {
  const auto device = make_cpu_device();
  const size_t bytes = GENERATE(1, 63, 64, 4097, (1u << 20), (1u << 20) + 1, (5u << 20) + 3);
  CAPTURE(bytes);
  const Buffer buffer = device->allocate(bytes, MemoryKind::kWorkspace);
  const Memory memory = buffer.memory();
  REQUIRE(memory.bytes == bytes);
  CHECK(reinterpret_cast<uintptr_t>(memory.data) % (bytes > (1u << 20) ? 4096 : 64) == 0);
  CHECK(
      std::all_of(memory.data, memory.data + bytes, [](std::byte b) { return b == std::byte{}; }));
  std::fill(memory.data, memory.data + bytes, std::byte{7});
}

TEST_CASE("an empty buffer is allowed") {
  const auto device = make_cpu_device();
  CHECK(device->allocate(0, MemoryKind::kGradients).memory().bytes == 0);
}

TEST_CASE("a device counts what its buffers hold until they are gone") {
  const auto device = make_cpu_device();
  Buffer kept = device->allocate(100, MemoryKind::kParameters);
  {
    const Buffer dropped = device->allocate(2u << 20, MemoryKind::kGradients);
    CHECK(device->tracker().live()[MemoryKind::kGradients] == 2u << 20);
  }
  const Buffer moved = std::move(kept);
  CHECK(device->tracker().live().total() == 100);
  CHECK(device->tracker().peak().total() == (2u << 20) + 100);
}

TEST_CASE("a device gives out no more than its limit, and says what it holds") {
  const auto device = make_cpu_device();
  device->set_limit(1000);
  Buffer first = device->allocate(600, MemoryKind::kOptimizer);
  CHECK_THROWS_WITH(device->allocate(401, MemoryKind::kGradients),
                    Catch::Contains("gradients 401 B") && Catch::Contains("limit is 1000 B") &&
                        Catch::Contains("in use: optimizer 600 B"));
  const Buffer second = device->allocate(400, MemoryKind::kGradients);
  first = {};
  CHECK_NOTHROW(device->allocate(600, MemoryKind::kParameters));
}

TEST_CASE("assigning a buffer frees what it held") {
  const auto device = make_cpu_device();
  Buffer buffer = device->allocate(100, MemoryKind::kParameters);
  buffer = device->allocate(30, MemoryKind::kOptimizer);
  CHECK(device->tracker().live().total() == 30);
  buffer = Buffer();
  CHECK(device->tracker().live().total() == 0);
}

TEST_CASE("out of memory says what was wanted, for what, and what is in use") {
  const auto device = make_cpu_device();
  const Buffer held = device->allocate(1024, MemoryKind::kParameters);
  const size_t bytes = GENERATE(size_t{1} << 60, SIZE_MAX, SIZE_MAX - (2u << 20));
  try {
    const Buffer buffer = device->allocate(bytes, MemoryKind::kActivations);
    FAIL("allocated " << buffer.memory().bytes);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kDevice);
    CHECK_THAT(error.what(), Catch::Matchers::Contains("TiB on cpu"));
    CHECK_THAT(error.what(), Catch::Matchers::Contains("in use: parameters 1 KiB"));
  }
  CHECK(device->tracker().live().total() == 1024);
}

}  // namespace gxp
