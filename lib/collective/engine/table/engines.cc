#include "lib/collective/engine/table/engines.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "lib/base/find_row.h"
#include "lib/base/log.h"
#include "lib/collective/engine/gpu_choice.h"
#include "lib/collective/engine/job_plan.h"
#include "lib/collective/engine/native/native_engine.h"
#include "lib/net/store/facts.h"
#include "lib/transport/table/table.h"
#ifdef GXP_WITH_CUDA
#include "lib/collective/engine/nccl/nccl_engine.h"
#include "lib/device/cuda_device.h"
#include "lib/device/gpu_share.h"
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
  engine->tune(ranks.deadline);
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
        "engine mpi: MPI chooses the order of addition, so the last bits may vary with the MPI "
        "library and the size of a call");
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
  if (context.ranks.rank == 0) {
    log_info("engine nccl: NCCL {}; host memory is copied to the GPU and back",
             to_string(library.version()));
    for (const std::string& line : missing_features(library.version()))
      log_info("engine nccl: {}", line);
    if (context.selection.layout_invariant)
      log_warn(
          "engine nccl: NCCL chooses the order of addition, so the last bits may vary with its "
          "version, the topology and the size of a call");
  }
  std::unique_ptr<Device> own;
  if (context.ranks.gpu == nullptr)
    own = make_cuda_device(gpu_of_rank(context.local_rank, cuda_device_count()));
  Device& gpu = own ? *own : *context.ranks.gpu;
  return make_nccl_engine({.library = library,
                           .queue = make_cuda_queue(gpu, std::move(own)),
                           .device = context.device,
                           .recorder = context.recorder,
                           .ctas = {context.comm.nccl_min_ctas, context.comm.nccl_max_ctas}},
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

// Whether this rank's GPU reaches those of its host, and all ranks are on one host, as far as that
// is known without trying.
Support reach_of(Device* gpu, const std::vector<GpuRankFacts>& ranks, size_t self) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].host != ranks[self].host) return {false, "the ranks are on several hosts"};
    if (rank == self || gpu == nullptr) continue;
    const DeviceSharing& sharing = *gpu->sharing();
    if (const Support own = sharing.support(); !own) return own;
    if (const Support found = sharing.reaches(ranks[rank].gpu); !found) return found;
  }
  return {};
}

GpuChoice choose_together(const EngineContext& context) {
  const TransportContext& ranks = context.ranks;
  const auto tell = [&](const auto& mine, std::string_view what) {
    return exchange_facts(mine, *ranks.store, fmt::format("{}, to choose an engine", what),
                          ranks.deadline);
  };
  const bool has_gpu = ranks.gpu != nullptr && ranks.gpu->sharing() != nullptr;
  const GpuRankFacts mine{ranks.host, has_gpu ? ranks.gpu->sharing()->identity() : "",
                          has_gpu ? probe_nccl() : Support{false, "it has no GPU"}};
  const std::vector<GpuRankFacts> facts = tell(mine, "GPUs of ranks");
  const std::vector<Support> reached =
      tell(reach_of(has_gpu ? ranks.gpu : nullptr, facts, size_t(ranks.rank)), "reach of GPUs");
  const auto in_the_way = std::ranges::find(reached, false, &Support::ok);
  return choose_gpu_engine(facts, in_the_way == reached.end() ? Support{} : *in_the_way,
                           context.selection.layout_invariant);
}

}  // namespace

const EngineRow& choose_engine_of_job(const EngineContext& context) {
  const CommConfig& comm = context.comm;
  const bool is_open = comm.engine == "auto" && comm.transport == "auto" &&
                       comm.algorithm == "auto" && comm.channels == 0 && comm.segment_bytes == 0 &&
                       comm.topology.empty();
  if (!is_open || context.ranks.world_size == 1) return choose_engine(comm);
  if (comm.codec != "none" || comm.gather_codec != "none") {
    if (context.ranks.rank == 0)
      log_info("comm.engine auto: {}: codecs work in host memory, which all calls pass through",
               kEngines.front().name);
    return kEngines.front();
  }
  const GpuChoice choice = choose_together(context);
  if (context.ranks.rank == 0 && !choice.reason.empty()) {
    if (choice.staged)
      log_warn("comm.engine auto: {}: {}", choice.engine, choice.reason);
    else
      log_info("comm.engine auto: {}: {}", choice.engine, choice.reason);
  }
  return find_row(kEngines, choice.engine, "comm.engine", ErrorKind::kConfig);
}

std::span<const EngineRow> engine_rows() { return kEngines; }

const EngineRow& choose_engine(const CommConfig& comm) {
  const EngineRow& row = comm.engine == "auto"
                             ? kEngines.front()
                             : find_row(kEngines, comm.engine, "comm.engine", ErrorKind::kConfig);
  if (comm.engine != "auto" && row.name != "nccl" &&
      (comm.nccl_min_ctas > 0 || comm.nccl_max_ctas > 0))
    fail(ErrorKind::kConfig,
         "comm.nccl_min_ctas = {}, comm.nccl_max_ctas = {}: engine '{}' is not NCCL; leave them at "
         "0",
         comm.nccl_min_ctas, comm.nccl_max_ctas, row.name);
  if (row.is_own) return row;
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
