#include "lib/transport/verbs/verbs_registrations.h"

#include <sys/mman.h>

#include <vector>

#include "lib/transport/verbs/verbs_find.h"
#include "tests/catch.h"
#include "tests/transport/fake_verbs/fake_verbs.h"

using namespace gxp;

namespace {

// Registrations with one or two devices of the fake, or of this machine.
struct Registered {
  explicit Registered(size_t most_kept = 1024) {
    const VerbsOffer offer = find_verbs_ports({});
    if (offer.ports.empty()) {
      WARN("skipped: this host " << offer.obstacle);
      return;
    }
    verbs = load_verbs();
    std::vector<VerbsDevice*> pointers;
    for (const VerbsPort& port : offer.ports) {
      devices.push_back(std::make_unique<VerbsDevice>(verbs, port, 16, std::chrono::seconds(4)));
      pointers.push_back(devices.back().get());
    }
    all = std::make_unique<VerbsRegistrations>(pointers, most_kept);
  }
  VerbsFunctions verbs{};
  std::vector<std::unique_ptr<VerbsDevice>> devices;
  std::unique_ptr<VerbsRegistrations> all;  // null: skipped
};

ConstMemory part(const std::vector<std::byte>& buffer, size_t at, size_t bytes) {
  return {buffer.data() + at, bytes};
}

}  // namespace

TEST_CASE("ordinary memory is registered while it is used, and what lies in it too",
          "[registrations]") {
  const Registered here;
  if (!here.all) return;
  const std::vector<std::byte> buffer(100000);
  auto outer = here.all->use(part(buffer, 0, 100000));
  auto inner = here.all->use(part(buffer, 5000, 10));
  CHECK(here.all->count() == 1);
  CHECK(inner.local_key(0) == outer.local_key(0));
  outer.reset();
  CHECK(here.all->count() == 1);
  inner.reset();
  CHECK(here.all->count() == 0);
}

TEST_CASE("memory that is freed and comes back is registered anew", "[registrations]") {
  const Registered here;
  if (!here.all) return;
  constexpr size_t kBytes = 1 << 20;
  const auto map_at = [](void* address) {
    return static_cast<std::byte*>(
        mmap(address, kBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (address == nullptr ? 0 : MAP_FIXED), -1, 0));
  };
  std::byte* const first = map_at(nullptr);
  auto use = here.all->use({first, kBytes});
  const uint32_t key = use.local_key(0);
  use.reset();
  CHECK(here.all->count() == 0);
  munmap(first, kBytes);
  REQUIRE(map_at(first) == first);
  // Devices may give a number again; the fake does not.
  if (fake_verbs() != nullptr) CHECK(here.all->use({first, kBytes}).local_key(0) != key);
  munmap(first, kBytes);
}

TEST_CASE("memory that is kept is registered once, whole, until it is forgotten",
          "[registrations]") {
  const Registered here;
  if (!here.all) return;
  const std::vector<std::byte> buffer(1 << 20);
  here.all->keep(part(buffer, 0, buffer.size()));
  const uint32_t key = here.all->use(part(buffer, 10, 20)).local_key(0);
  CHECK(here.all->use(part(buffer, 500000, 20)).local_key(0) == key);
  CHECK(here.all->count() == 1);
  here.all->forget(part(buffer, 0, buffer.size()));
  CHECK(here.all->count() == 0);
}

TEST_CASE("a hundred thousand buffers leave nothing behind", "[registrations]") {
  const Registered here(16);
  if (!here.all) return;
  std::vector<std::vector<std::byte>> buffers(100, std::vector<std::byte>(4096));
  for (size_t i = 0; i < 50; ++i) here.all->keep(memory_of(std::as_const(buffers[i])));
  std::vector<VerbsRegistrations::Use> uses(8);
  size_t most = 0;
  for (size_t i = 0; i < 100000; ++i) {
    const size_t which = i * 7919 % buffers.size();
    uses[i % uses.size()] = here.all->use(part(buffers[which], i % 1000, 1 + i % 3000));
    most = std::max(most, here.all->count());
  }
  CHECK(most <= 16 + uses.size());
  uses.clear();
  for (size_t i = 0; i < 50; ++i) here.all->forget(memory_of(std::as_const(buffers[i])));
  CHECK(here.all->count() == 0);
  if (fake_verbs() != nullptr) CHECK(fake_verbs()->registered_regions() == 0);
}

TEST_CASE("what no operation uses makes room where no more memory may be locked",
          "[registrations]") {
  FakeVerbs* const fake = fake_verbs();
  const Registered here;
  if (!here.all || fake == nullptr) return;
  const std::vector<std::byte> old(60000);
  const std::vector<std::byte> fresh(60000);
  here.all->keep(memory_of(old));
  auto use = here.all->use(memory_of(old));
  fake->set_lockable_bytes(200000);  // two devices
  CHECK_THROWS_AS(here.all->use(memory_of(fresh)), Error);
  use.reset();
  CHECK(here.all->use(memory_of(fresh)).valid());
  fake->reset();
}
