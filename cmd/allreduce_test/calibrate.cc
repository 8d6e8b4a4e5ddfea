#include "cmd/allreduce_test/modes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "cmd/exit_codes.h"
#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/collective/communicator.h"
#include "lib/tools/colltest/calibrate.h"

namespace gxp {
namespace {

constexpr std::array<size_t, 4> kShownBytes = {8, 4 << 10, 64 << 10, 1 << 20};
constexpr size_t kLeastCalibrated = 64 << 10;  // bytes

// Some costs have one size only.
Cell time_at(const CostCurve& curve, size_t bytes) {
  if (curve.points.size() == 1 && bytes != kShownBytes[0]) return {};
  return curve.points.size() == 1 ? curve.points[0].seconds * 1e6 : curve.at(double(bytes)) * 1e6;
}

Report to_report(const Profile& measured, const std::string& file) {
  Report report{.schema = "gxp.allreduce-test.calibration/1",
                .facts = {{{"file"}, file},
                          {{"cpu"}, measured.machine.cpu},
                          {{"cores"}, int64_t{measured.machine.cores}}}};
  std::vector<Column> columns = {{"transport"}, {"ranks"}, {"hosts"}, {"curve"}};
  for (const size_t bytes : kShownBytes)
    columns.push_back({fmt::format("time_us.{}", bytes), format_bytes(bytes) + " us"});
  Table& table = report.add_table("curves", columns);
  for (const LinkClass& link : measured.links) {
    for (const auto& [name, curve] : link.curves) {
      std::vector<Cell> row = make_row(link.transport, link.ranks, link.hosts, name);
      for (const size_t bytes : kShownBytes) row.push_back(time_at(curve, bytes));
      table.add_row(std::move(row));
    }
  }
  return report;
}

// What the file holds of this machine.
Profile former_profile(const std::string& file, const Machine& machine) {
  std::error_code unreachable;
  if (!std::filesystem::exists(file, unreachable)) return {};
  try {
    Profile former = load_profile(file);
    if (former.machine.cpu == machine.cpu && former.machine.cores == machine.cores) return former;
    log_warn("{} was measured on {} cores of '{}'; it is replaced", file, former.machine.cores,
             former.machine.cpu);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt) throw;
    log_warn("{}; it is replaced", error.what());
  }
  return {};
}

std::string file_of(const std::string& named, const Environment& environment) {
  const std::string file = named.empty() ? default_profile_path(environment) : named;
  if (file.empty()) fail(ErrorKind::kUsage, "--calibrate: HOME is not set; name a file");
  return file;
}

}  // namespace

int calibrate_ranks(const AllreduceOptions& options, JobSettings job,
                    const Environment& environment, int world_size) {
  if (world_size < 2) fail(ErrorKind::kUsage, "--calibrate: one rank has no links; use --nproc 2");
  const std::string file = file_of(*options.calibrate, environment);
  if (const auto launched = launch_ranks(options.launch, environment, job.comm)) return *launched;
  job.comm.profile = "builtin";  // what is replaced need not be right
  const std::unique_ptr<Device> device = make_cpu_device();
  run_rank(options.launch, environment, job, *device, [&](Communicator& communicator) {
    const Profile measured =
        calibrate(communicator, std::max(options.bench.sweep.max_bytes, kLeastCalibrated));
    if (communicator.rank() != 0) return;
    Profile profile = former_profile(file, measured.machine);
    profile.merge(measured);
    save_profile(profile, file);
    print(to_report(measured, file), options.format);
  });
  return kExitOk;
}

}  // namespace gxp
