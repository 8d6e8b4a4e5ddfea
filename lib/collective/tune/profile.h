// The constants of the cost model (cost_model.h), what the links and cores of a machine cost, and
// what the algorithms took there: measured by `gxp allreduce-test --calibrate` and kept in a TOML
// file, or built in.
//
// The alpha-beta-gamma model (Hockney 1994; Thakur, Rabenseifner & Gropp, Int. J. High Perform.
// Comput. Appl. 19(1), 2005) has three constants: alpha a message, beta a byte, gamma a folded
// byte. On real machines all three depend on whether the data fit the caches and on how many ranks
// share a core. So here each is a curve over sizes, measured with as many ranks as will run:
//   start       what a collective takes before its first round, until the ranks are together
//   swap        a round of no bytes in which each rank waits for one other
//   exchange    all ranks send m bytes to the next and receive m from the previous one, again and
//               again: a chain of waiting, which takes long where ranks share cores
//   hop         one rank sends m bytes to another, while the rest wait
//   fold        what it adds that all ranks fold the m bytes as they arrive
//   fold-later  all ranks fold m bytes with others of their memory
//   copy        all ranks copy m bytes within their memory
// Where the ranks see each other's memory a collective is one routine, not messages. It has
// curves of its own, over the bytes of the logical buffer:
//   direct-COLLECTIVE  in memory from Communicator::allocate()
//   staged-COLLECTIVE  in any other memory
// Each is the least of the methods that it can take (shared_methods.h), where those were measured:
//   copied-COLLECTIVE, placed-COLLECTIVE, cma-COLLECTIVE, tiles-COLLECTIVE
// The model is off by a tenth or more, which is too much to choose by. So a calibration also runs
// what it has a model of; over the bytes of the logical buffer, each with the segment that the
// model gives it:
//   ALGORITHM-COLLECTIVE  by messages: "ring-all-reduce". None built in
// File: one section a link class; a curve is a list of "BYTES SECONDS", both ascending.
//   [machine]
//   version = 2
//   cpu = "Intel(R) Xeon(R) Processor"
//   cores = 2
//   linux = "6.18.5"
//   [shm-4]
//   transport = "shm"
//   ranks = 4
//   hosts = 1
//   exchange = ["8 1.1e-06", "4096 1.9e-06", "65536 1.4e-05"]
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/environment.h"
#include "lib/collective/algorithm/call.h"

namespace gxp {

// Seconds at given sizes. Between two points the logarithms are interpolated; below the first the
// time is constant, above the last proportional to the bytes. Never falls with size.
struct CostCurve {
  struct Point {
    double bytes = 0;
    double seconds = 0;
  };
  std::vector<Point> points;  // ascending in both; at least one
  [[nodiscard]] double at(double bytes) const;
  // The same for a part of `whole` bytes that are in use: a small part of a large buffer does not
  // come from the cache.
  [[nodiscard]] double at_part(double bytes, double whole) const;
};

// The links between the given number of ranks. With one host: all of them, sharing its cores. With
// several: one rank of each, all else idle.
struct LinkClass {
  std::string transport{};  // "shm"
  int ranks = 2;
  int hosts = 1;
  std::map<std::string, CostCurve, std::less<>> curves{};  // by the names above

  // Null if it was not measured.
  [[nodiscard]] const CostCurve* curve(std::string_view name) const;
};

// "direct-all-reduce", "staged-all-reduce": of the routine in shared memory.
std::string shared_curve_name(Collective collective, MemoryOrigin origin);
// "ring-all-reduce": of the algorithm by messages.
std::string message_curve_name(const Algorithm& algorithm);

struct Machine {
  std::string cpu{};
  int cores = 1;
  std::string linux_release{};

  // With so many ranks on this machine; 1 where every rank has a core.
  [[nodiscard]] double ranks_per_core(int ranks) const {
    return std::max(1.0, double(ranks) / cores);
  }
};
Machine this_machine();

struct Profile {
  Machine machine{};  // where it was measured
  std::vector<LinkClass> links{};

  // Classes of `other` are added or take the place of their like.
  void merge(const Profile& other);
};

// For machines that have not been calibrated: shm and tcp on 2 cores of a 2023 server CPU.
const Profile& builtin_profile();

// The nearest link class: of that transport, else of its substitute (shm for any transport of one
// host; tcp for any other), from `profile`, else built in; of those the one whose ranks are
// nearest.
const LinkClass& find_link(const Profile& profile, std::string_view transport, int ranks,
                           int hosts);

// Text and back, without loss. `origin` names the text in errors.
// kCorrupt: "read profile FILE: line 7: exchange: ...".
std::string to_toml(const Profile& profile);
Profile parse_profile(std::string_view text, std::string_view origin);
// Equal for equal content.
uint64_t hash_of(const Profile& profile);

// kIo, also if there is no such file; kCorrupt as parse_profile().
Profile load_profile(const std::string& path);
// Makes the directory; a reader finds the old file or the new one, whole. kIo.
void save_profile(const Profile& profile, const std::string& path);

// $GXP_PROFILE, else gxp/profile.toml in $XDG_CACHE_HOME or ~/.cache; "" if none is set.
std::string default_profile_path(const Environment& environment);

// The profile that `name` stands for: a file; "builtin"; or by "" the file at the default path, and
// without it the built-in one. Errors as load_profile().
Profile find_profile(const std::string& name, const Environment& environment);

}  // namespace gxp
