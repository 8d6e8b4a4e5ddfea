// Runs a function as every rank of a group: ranks are threads, joined by the inproc transport.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lib/collective/communicator.h"
#include "lib/transport/peers/inproc.h"

namespace gxp {

// A rank's transport, made on its thread.
using MakeTransport = std::function<std::unique_ptr<Transport>(int rank)>;

// fn(Communicator&) on each rank; its results by rank. When a rank throws, the others are aborted
// and the first exception is rethrown here.
template <class Fn>
auto run_ranks_over(const MakeTransport& make_transport, int world_size, const Fn& fn,
                    const CommunicatorOptions& options = {}, Device* shared_device = nullptr) {
  std::vector<decltype(fn(std::declval<Communicator&>()))> results(static_cast<size_t>(world_size));
  std::mutex mutex;
  std::exception_ptr first;  // guarded by mutex
  const auto run_rank = [&](int rank) {
    try {
      const std::unique_ptr<Device> own_device = make_cpu_device();
      Device& device = shared_device != nullptr ? *shared_device : *own_device;
      Communicator comm(make_transport(rank), device, options);
      try {
        results[static_cast<size_t>(rank)] = fn(comm);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        comm.abort(error.what());
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < world_size; ++rank) ranks.emplace_back(run_rank, rank);
  }
  if (first) std::rethrow_exception(first);
  return results;
}

template <class Fn>
auto run_ranks(int world_size, const Fn& fn, const CommunicatorOptions& options = {},
               Device* shared_device = nullptr) {
  InprocWorld world(world_size);
  return run_ranks_over([&](int rank) { return world.make_transport(rank); }, world_size, fn,
                        options, shared_device);
}

}  // namespace gxp
