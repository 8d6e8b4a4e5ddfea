// Causes that slow down the GPUs and NICs of a host, or keep them from reaching each other: a table
// of checks over the host's files, and over the limits of the process.
//
// One more check is a row in doctor.cc, its function in one of the doctor_*.cc and its rows in the
// test. A check looks and never changes anything. It needs no privilege: where it cannot see, it
// says so, and what would show it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/report/report.h"
#include "lib/topo/read/system_root.h"

namespace gxp {

class HostTree;

enum class DoctorVerdict { kProblem, kWarning, kUnseen, kOk };  // the worst first
std::string_view to_string(DoctorVerdict verdict);              // "problem", "could not see"

// The devices that libibverbs reports to this process.
struct RdmaFacts {
  struct Port {
    std::string name{};     // "mlx5_0 port 1"
    int packet_bytes = 0;   // the most data that a packet takes: the port's active MTU
    std::string address{};  // the address that it would use, "10.0.0.7"
    bool takes_dma_buf = false;
  };
  std::string obstacle{};     // why this process can use no port; "": it can
  std::vector<Port> ports{};  // the usable ports; the first has registered 16 MiB
};

// Facts about the process that are in no file.
struct ProcessFacts {
  std::string nccl_version{};  // "2.21.5"; "": none
  std::string nccl_error{};    // why there is none
  std::optional<uint64_t> shared_memory_free_bytes{};
  std::optional<RdmaFacts> rdma{};  // none: nobody asked
};

struct DoctorSight {
  const SystemRoot& root;
  const HostTree& host;  // read from `root`
  ProcessFacts process{};
};

struct Seen {
  DoctorVerdict verdict = DoctorVerdict::kOk;
  std::string what;      // a sentence without its full stop
  std::string remedy{};  // "": the check's
};

struct DoctorCheck {
  std::string_view id;
  std::string_view why;     // it matters
  std::string_view remedy;  // for a problem or warning, or to see
  Seen (*look)(const DoctorSight& sight);
};

struct Diagnosis {
  const DoctorCheck* check = nullptr;
  Seen seen;
  [[nodiscard]] std::string remedy() const {
    return seen.remedy.empty() ? std::string(check->remedy) : seen.remedy;
  }
};

std::span<const DoctorCheck> doctor_checks();
// All checks, in the table's order.
std::vector<Diagnosis> examine(const DoctorSight& sight);
// The worst first: a line each, and for what is not ok why it matters and what to do.
std::string doctor_text(const HostTree& host, const std::vector<Diagnosis>& diagnoses);
// checks[] of {id, verdict, seen, why, remedy}; how many there are of each verdict.
Report doctor_report(const HostTree& host, const std::vector<Diagnosis>& diagnoses);
bool any_problem(const std::vector<Diagnosis>& diagnoses);

}  // namespace gxp
