// Ranks that are threads with an emulated GPU each, over engine nccl and the library that stands
// for NCCL, whose calls are works of the emulated streams.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/collective/communicator.h"
#include "lib/collective/engine/nccl/nccl_engine.h"
#include "lib/collective/flight/diagnosis.h"
#include "lib/device/cuda_device.h"
#include "lib/device/cuda_stream.h"
#include "tests/collective/fake_nccl.h"
#include "tests/cuda/emulation/cuda_runtime_api.h"
#include "tests/cuda/emulation/streams.h"
#include "tests/transport/worlds.h"

namespace gxp {

inline fake_nccl::Controls stream_controls() {
  return {.enqueue =
              [](NcclStream stream, std::function<bool()> attempt) {
                static_cast<void>(emulation::enqueue_until(static_cast<cudaStream_t>(stream),
                                                           std::move(attempt)));
              },
          .allocate =
              [](size_t bytes) {
                void* data = nullptr;
                return cudaMalloc(&data, bytes) == cudaSuccess ? data : nullptr;
              },
          .free = [](void* data) { cudaFree(data); }};
}

struct NcclRanks {
  fake_nccl::Controls controls = stream_controls();
  std::chrono::milliseconds timeout = std::chrono::seconds(20);
};

// fn(communicator), or fn(communicator, gpu), on each rank, whose GPU has its number; what they
// returned, or threw, by rank.
template <class Fn>
std::vector<std::string> run_over_nccl(int world_size, const Fn& fn, const NcclRanks& ranks = {}) {
  const EmulatedGpus gpus(world_size);
  const fake_nccl::ControlledNccl controlled(GXP_FAKE_NCCL, ranks.controls);
  const NcclLibrary library(GXP_FAKE_NCCL);
  World world("nccl", world_size);
  std::vector<std::string> texts(static_cast<size_t>(world_size));
  const auto errors = run_all(world_size, [&](int rank) {
    const auto store = world.join_store(rank);
    const auto host = make_cpu_device();
    const auto gpu = make_cuda_device(rank);
    FlightRecorder recorder(rank, world_size);
    connect_diagnosis(*store, rank == 0 ? &world.server() : nullptr, recorder, "");
    Communicator comm(make_nccl_engine({.library = library,
                                        .queue = make_cuda_queue(*gpu),
                                        .device = *host,
                                        .recorder = &recorder},
                                       world.context(*store)),
                      ranks.timeout, {&recorder, store.get()});
    if constexpr (std::is_invocable_v<Fn, Communicator&, Device&>)
      texts[size_t(rank)] = fn(comm, *gpu);
    else
      texts[size_t(rank)] = fn(comm);
    store->barrier("end", soon());
    store->close();
  });
  for (size_t rank = 0; rank < texts.size(); ++rank) texts[rank] += errors[rank];
  return texts;
}

}  // namespace gxp
