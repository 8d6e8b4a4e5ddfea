// The methods of a call among ranks that share memory (shared_executor.h), and which of them is
// taken: the fastest, as it was measured with these ranks, when they were tuned
// (startup_benchmark.h) or by a calibration (calibrate.h). Which one is the fastest depends on the
// CPU: CMA has cost half as much as tiles on one, and six times as much on another. A profile
// (profile.h) has a curve for each method and collective, over the bytes of the logical buffer;
// "direct-COLLECTIVE" and "staged-COLLECTIVE" are the least of those for communicator memory and
// for ordinary memory. All functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/collective/algorithm/algorithm.h"
#include "lib/collective/tune/profile.h"

namespace gxp {

enum class SharedMethod : uint8_t {
  kMessages,  // none: the ranks send each other messages
  kCopied,    // all of a small input next to its line
  kPlaced,    // from buffer to buffer, in communicator memory
  kCma,       // likewise in ordinary memory, by cross-memory attach (process_vm_readv)
  kTiles,     // through tiles in shared memory
};
std::string_view to_string(SharedMethod method);  // "tiles"
// The method with this name, of those that a user may ask for: "copied", "cma" and "tiles".
std::optional<SharedMethod> parse_shared_method(std::string_view name);

// Calls up to this size are measured in small pages. Larger memory has huge ones where the system
// gives them, as that of lib/device has, and CMA takes a third of the time then.
constexpr size_t kSmallPages = 1 << 20;

// The methods for a call, by the memory of the ranks, which a rank knows only after the handshake
// on the lines.
struct SharedMethods {
  SharedMethod communicator = SharedMethod::kPlaced;  // where all of it is the communicator's
  SharedMethod ordinary = SharedMethod::kTiles;       // else
  bool cma = false;                                   // is possible
  bool open = false;                                  // calls may show another to be faster
};

// The largest of the ranks' inputs, and the largest that is copied next to a line.
size_t largest_input(Collective collective, size_t bytes, int ranks);
size_t most_copied(Collective collective, int ranks);

std::string method_curve_name(SharedMethod method, Collective collective);  // "tiles-all-reduce"

// The class with the nearest number of ranks on one host for which methods were measured; null:
// none.
const LinkClass* find_methods(const Profile& profile, std::string_view transport, int ranks);

// The limits of the choice: what the OS permits, and what the user asks for.
struct MethodLimits {
  int ranks = 1;
  bool cma = false;                      // works between all ranks
  bool oversubscribed = false;           // ranks outnumber CPUs
  std::optional<SharedMethod> wanted{};  // for ordinary memory, where it is possible
};
// `measured` null: no measurement; then CMA is not used, since it may be slow.
SharedMethods fastest_methods(const LinkClass* measured, Collective collective, size_t bytes,
                              const MethodLimits& limits);
// Seconds, if the method was measured.
std::optional<double> seconds_of(SharedMethod method, const LinkClass* measured,
                                 Collective collective, size_t bytes);
// "tiles 7.9 us, cma 114 us": the methods of such a call, the taken one first.
std::string describe_methods(const LinkClass* measured, Collective collective, size_t bytes,
                             const MethodLimits& limits, bool communicator_memory);

// The profile with the class of so many ranks on one host as `methods` has it measured; the costs
// of messages stay, or are those of the nearest class. `cma` false: as if CMA did not work.
Profile with_methods(Profile profile, const LinkClass& methods, bool cma);

// Whether the times of messages were measured together with those of the methods, so that they can
// be compared. If not, ranks that share memory send none.
bool messages_compete(const Profile& profile, std::string_view transport, int ranks);

}  // namespace gxp
