// gxp topo doctor: what may keep a host's GPUs and NICs from their speed.
#include <sys/statvfs.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "cmd/result_file.h"
#include "cmd/topo/topo.h"
#include "lib/base/error.h"
#include "lib/collective/engine/nccl/nccl_library.h"
#include "lib/tools/topology/check/doctor.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/live_host.h"
#include "lib/transport/verbs/verbs_find.h"

namespace gxp {
namespace {

struct DoctorOptions {
  std::string from = "live";
  Format format = Format::kText;
};

RdmaFacts look_at_rdma() {
  const VerbsOffer offer = find_verbs_ports({});
  RdmaFacts facts{.obstacle = offer.obstacle};
  for (const VerbsPort& port : offer.ports) {
    const auto gid =
        std::ranges::find_if(port.gids, [](const VerbsGid& each) { return each.index >= 0; });
    facts.ports.push_back({.name = to_string(port),
                           .packet_bytes = 128 << port.mtu,
                           .address = gid == port.gids.end() ? "" : to_string(*gid),
                           .takes_dma_buf = port.takes_dma_buf});
  }
  return facts;
}

ProcessFacts look_at_process() {
  ProcessFacts facts;
  try {
    facts.nccl_version = to_string(NcclLibrary().version());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnavailable) throw;
    facts.nccl_error = error.what();
  }
  facts.rdma = look_at_rdma();
  struct statvfs shared {};
  if (::statvfs("/dev/shm", &shared) == 0)
    facts.shared_memory_free_bytes = uint64_t{shared.f_bavail} * shared.f_frsize;
  return facts;
}

int run(const DoctorOptions& options) {
  const bool live = options.from == "live";
  const auto root = live ? live_root() : open_recorded_directory(options.from);
  const HostTree host = live ? probe_host() : read_recorded_root(*root, options.from);
  const std::vector<Diagnosis> diagnoses =
      examine({*root, host, live ? look_at_process() : ProcessFacts{}});
  if (options.format == Format::kText) {
    write_stdout(doctor_text(host, diagnoses));
  } else {
    print(doctor_report(host, diagnoses), options.format);
  }
  return any_problem(diagnoses) ? exit_code(ErrorKind::kMismatch) : kExitOk;
}

}  // namespace

std::function<int()> define_topo_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();  // kept alive by the returned action
  app.add_option("--from", options->from,
                 "This host (live), or a directory with a recorded /proc and /sys, as "
                 "hwloc-gather-topology writes it")
      ->type_name("ROOT|live")
      ->capture_default_str();
  add_format_option(app, options->format);
  return [options] { return run(*options); };
}

}  // namespace gxp
