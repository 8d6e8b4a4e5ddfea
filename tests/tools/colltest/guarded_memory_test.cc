#include "lib/tools/colltest/guarded_memory.h"

#include <cstdint>

#include "tests/catch.h"

namespace gxp {
namespace {

TEST_CASE("a write outside of the placed memory is found, one inside is not", "[bench]") {
  const auto device = make_cpu_device();
  GuardedMemory guarded(*device,
                        device->allocate(GuardedMemory::room_for(100), MemoryKind::kWorkspace));
  CHECK(guarded.damaged() == 0);
  const Memory memory = guarded.place(4, 64);
  CHECK(memory.bytes == 64);
  CHECK(reinterpret_cast<uintptr_t>(memory.data) % 4096 == 4);
  memory.data[0] = memory.data[63] = std::byte{1};
  CHECK(guarded.damaged() == 0);
  memory.data[64] = std::byte{1};
  CHECK(guarded.damaged() == 1);
  memory.data[-1] = std::byte{1};
  CHECK(guarded.damaged() == 2);
  guarded.place(0, 100);
  CHECK(guarded.damaged() == 0);
}

}  // namespace
}  // namespace gxp
