// Memory that runs out at any allocation, once or for good.
#include <cstdlib>
#include <new>

#include "cmd/convert_ckpt/reports.h"
#include "lib/base/error.h"
#include "tests/catch.h"

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // which replace them themselves
namespace {

// Of this thread; -1: none fails.
thread_local long fails_at = -1;
thread_local bool for_good = false;
thread_local long allocations = 0;

}  // namespace

// Not inlined: GCC takes a delete whose new it does not see for a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  const long number = allocations++;
  if (fails_at >= 0 && (number == fails_at || (for_good && number > fails_at)))
    throw std::bad_alloc();
  if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace gxp {
namespace {

NamedTensors two_tensors() {
  const std::string name = "transformer.h.0.attention.weight";  // too long for a string's own room
  return {.format = "torch",
          .tensors = {{.info = {.name = name, .shape = {2, 3}}, .read = {}},
                      {.info = {.name = name + "2", .shape = {5}}, .read = {}}}};
}

// How `act` ends if allocation `at` fails; 0: well.
template <class Act>
int code_without_memory(long at, bool and_all_later, Act act) {
  allocations = 0;
  for_good = and_all_later;
  fails_at = at;
  int code = 0;
  try {
    act();
  } catch (...) {
    code = ending_of(std::current_exception()).code;
  }
  fails_at = -1;
  return code;
}

}  // namespace

TEST_CASE("whichever allocation fails, an inspection ends by code 4 or well", "[cmd]") {
  const bool and_all_later = GENERATE(false, true);
  const NamedTensors tensors = two_tensors();
  for (long at = 0; at < 1000; ++at) {
    Report report{"gxp.test/1"};
    const int code =
        code_without_memory(at, and_all_later, [&] { add_inspection(tensors, false, report); });
    if (allocations <= at) return;  // there are no more
    CAPTURE(at);
    CHECK((code == 4 || code == 0));
  }
  FAIL("an inspection of two tensors takes more than 1000 allocations");
}

}  // namespace gxp
#endif
