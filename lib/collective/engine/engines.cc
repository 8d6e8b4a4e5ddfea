#include "lib/collective/engine/engines.h"

#include <array>

#include "lib/base/find_row.h"
#include "lib/base/log.h"
#include "lib/collective/engine/job_plan.h"
#include "lib/collective/engine/native/native_engine.h"
#include "lib/transport/table.h"
#ifdef GXP_WITH_CUDA
#include "lib/collective/engine/nccl/nccl_engine.h"
#include "lib/device/cuda_device.h"
#endif
#ifdef GXP_WITH_MPI
#include "lib/collective/engine/mpi/mpi_engine.h"
#endif

namespace gxp {
namespace {

Support probe_native() { return {}; }

std::unique_ptr<Engine> make_native(const EngineContext& context) {
  const TransportContext& ranks = context.ranks;
  auto transport = make_transport(context.comm.transport, ranks);
  RankPlan plan = share_plan_for_job(context.comm.topology, transport->hosts(), *ranks.store,
                                     ranks.world_size, ranks.deadline);
  auto engine =
      std::make_unique<NativeEngine>(std::move(transport), context.device, context.selection,
                                     context.profile, context.recorder, std::move(plan));
  engine->meet(ranks.deadline);
  return engine;
}

#ifdef GXP_WITH_MPI
Support probe_mpi() { return {}; }

std::unique_ptr<Engine> make_mpi(const EngineContext& context) {
  auto engine = make_mpi_engine(start_mpi_job(), context.device, context.ranks.deadline);
  const TransportContext& ranks = context.ranks;
  if (engine->rank() != ranks.rank || engine->world_size() != ranks.world_size)
    fail(ErrorKind::kConfig,
         "start engine 'mpi': the launcher says rank {} of {}, MPI says {} of {}; is gxp built "
         "with the MPI whose mpirun starts it?",
         ranks.rank, ranks.world_size, engine->rank(), engine->world_size());
  if (ranks.rank == 0 && context.selection.layout_invariant)
    log_warn(
        "engine mpi: MPI decides in which order it adds, so the last bits may depend on it and on "
        "the sizes of the calls");
  return engine;
}
#else
Support probe_mpi() { return {false, "not in this build; configure with -DGXP_MPI=ON"}; }
std::unique_ptr<Engine> make_mpi(const EngineContext& /*context*/) { return nullptr; }
#endif

#ifdef GXP_WITH_CUDA
Support probe_nccl() {
  if (const Support support = cuda_support(); !support) return support;
  try {
    const NcclLibrary library;
    return {true, "NCCL " + to_string(library.version())};
  } catch (const Error& error) {
    return {false, error.what()};
  }
}

std::unique_ptr<Engine> make_nccl(const EngineContext& context) {
  const NcclLibrary library;
  if (context.ranks.rank == 0)
    log_info("engine nccl: NCCL {}; host memory is copied to the GPU and back",
             to_string(library.version()));
  return make_nccl_engine(library, make_cuda_queue(context.local_rank), context.device,
                          context.ranks);
}
#else
Support probe_nccl() { return {false, "not in this build; configure with -DGXP_CUDA=ON"}; }
std::unique_ptr<Engine> make_nccl(const EngineContext& /*context*/) { return nullptr; }
#endif

constexpr std::array kEngines{
#define GXP_ENGINE(name, ...) EngineRow{#name, __VA_ARGS__},
#include "lib/config/engines.inc"
#undef GXP_ENGINE
};

}  // namespace

std::span<const EngineRow> engine_rows() { return kEngines; }

const EngineRow& choose_engine(const CommConfig& comm) {
  const EngineRow& row = comm.engine == "auto"
                             ? kEngines.front()
                             : find_row(kEngines, comm.engine, "comm.engine", ErrorKind::kConfig);
  if (row.name == "native") return row;
  require_own_choice(row.name, {.algorithm = comm.algorithm,
                                .channels = comm.channels,
                                .segment_bytes = comm.segment_bytes});
  if (comm.transport != "auto")
    fail(ErrorKind::kConfig, "comm.transport = {}: engine '{}' has its own; leave it at auto",
         comm.transport, row.name);
  if (!comm.topology.empty())
    fail(ErrorKind::kConfig, "comm.topology = {}: engine '{}' plans for itself; leave it out",
         comm.topology, row.name);
  if (const Support support = row.probe(); !support)
    fail(ErrorKind::kUnavailable, "engine '{}': {}", row.name, support.reason);
  return row;
}

}  // namespace gxp
