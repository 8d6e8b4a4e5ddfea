// gxp's own collectives: algorithms over a transport, or in memory that the ranks share.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/collective/engine/device_memory/device_executor.h"
#include "lib/collective/engine/device_memory/device_peers.h"
#include "lib/collective/engine/engine.h"
#include "lib/collective/engine/gather.h"
#include "lib/collective/engine/native/executor.h"
#include "lib/collective/engine/shared_memory/shared_executor.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/collective/tune/shared_selection.h"
#include "lib/device/device.h"
#include "lib/topo/plan/rank_plan.h"

namespace gxp {

class NativeEngine final : public Engine {
 public:
  // All ranks of the transport. Borrows the device, which gives the scratch memory and counts it as
  // kCommunication, and the recorder; null: it has its own. An empty plan: rings in rank order,
  // groups are hosts. kConfig: there is no such algorithm.
  NativeEngine(std::unique_ptr<Transport> transport, Device& device,
               const SelectionSettings& settings, const Profile& profile,
               FlightRecorder* recorder = nullptr, RankPlan plan = {});

  // Finds out what is faster here where ranks share memory (startup_benchmark.h), unless the
  // profile knows: some 5 ms. All ranks call it before their first call; groups that are split off
  // know it too.
  void tune(Deadline deadline);

  [[nodiscard]] std::string_view name() const override { return "native"; }
  [[nodiscard]] std::string_view transport_name() const override;
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world_size() const override { return int(members_.size()); }
  [[nodiscard]] std::span<const int> hosts() const override { return hosts_; }

  // GPU memory by RDMA alone, where it reaches it.
  [[nodiscard]] bool supports_p2p_memory(MemorySpace space) const override {
    return state_->transport->supports_memory(space);
  }
  [[nodiscard]] bool supports_memory(MemorySpace space) const override;
  [[nodiscard]] Support join_device(const FoldingDevice& device, uint32_t sequence,
                                    Deadline deadline) override;
  void leave_device() noexcept override;

  void execute(const Call& call, ConstMemory input, Memory output, Deadline deadline) override;
  // Between devices that reach each other, each of one rank. One stream for all calls.
  [[nodiscard]] bool queues_calls() const override;
  [[nodiscard]] std::unique_ptr<QueuedCall> enqueue(const Call& call, ConstMemory input,
                                                    Memory output, Stream& stream,
                                                    Deadline deadline) override;
  void exchange(std::span<const PeerMessage> messages, Deadline deadline) override;
  [[nodiscard]] std::unique_ptr<Engine> split(int color, int key, uint32_t sequence,
                                              Deadline deadline) override;
  [[nodiscard]] CommunicatorMemory allocate(size_t bytes) override;
  void set_selection(const SelectionSettings& settings) override;
  [[nodiscard]] AlgorithmPlan plan(const Call& call, MemoryOrigin origin) override {
    const CachedPlans& plans = plans_for(call);
    return (origin == MemoryOrigin::kOrdinary ? plans.ordinary : plans.communicator)->plan;
  }
  [[nodiscard]] WireCounters counters() const override;
  [[nodiscard]] uint64_t bytes_sent_between_hosts() const override;
  void abort(std::string_view reason) noexcept override;

 private:
  // What the engines of all groups have in common.
  struct EngineState {
    EngineState(std::unique_ptr<Transport> transport_in, Device& device_in, Profile profile_in,
                FlightRecorder* recorder_in);
    std::unique_ptr<Transport> transport;
    Device& device;
    std::shared_ptr<const Profile> profile;  // owners: the engines
    std::optional<FlightRecorder> own_recorder;
    FlightRecorder& recorder;
    int next_group = 1;
    uint32_t exchanges = 0;                     // how many there were
    std::atomic<uint64_t> shared_bytes{0};      // that this rank gave without messages
    std::mutex peers_mutex;                     // guards what abort() and joining both touch:
    std::unique_ptr<DevicePeers> device_peers;  // null: no device, or none that peers reach
    std::vector<int> device_ranks;              // of the transport: whose devices reach each other
    bool own_devices = false;                   // each of those has a device to itself
    const Stream* queues_on = nullptr;          // null: nothing was queued yet
  };
  // What a group knows of the costs of its calls; a part that is split from it begins with that.
  struct Costs {
    std::shared_ptr<const Profile> profile;  // owners: the engines of a group and its descendants
    bool measures = false;                   // tune() was called: parts call it when they are split
    bool tuned = false;  // the shared methods were measured, here or in a parent
    bool cma = true;     // CMA works between all ranks
    size_t tile_bytes = SharedExecutor::kMostTileBytes;
  };
  // No members: all ranks of the transport.
  NativeEngine(std::shared_ptr<EngineState> state, const SelectionSettings& settings,
               std::vector<int> members, int group, RankPlan rank_plan, Costs costs);
  void make_model();
  // Null: none.
  void use_device(std::unique_ptr<DevicePeers> peers) noexcept;
  struct CachedPlan {
    AlgorithmPlan plan;
    uint64_t bytes_sent = 0;  // by this rank
  };
  // For a call on ordinary memory, and on the communicator's.
  struct CachedPlans {
    Call call{.root = -1};
    const CachedPlan* ordinary = nullptr;
    const CachedPlan* communicator = nullptr;
    SharedMethods methods{};
    uint64_t shared_bytes = 0;  // that this rank gives if the call goes one of them
  };
  const CachedPlans& plans_for(const Call& call);
  const CachedPlan& plan_for(const Call& call, MemoryOrigin origin);
  void execute_on_device(const Call& call, ConstMemory input, Memory output, Deadline deadline);
  void count_shared(uint64_t bytes);
  // For gather.h: calls of this number.
  [[nodiscard]] RunCall run_as(uint32_t sequence, Deadline deadline);
  // device_join.cc: the verdicts of all ranks of the group, and what is in the way of each.
  [[nodiscard]] std::vector<Support> share_verdicts(const Support& mine, uint32_t sequence,
                                                    Deadline deadline);
  [[nodiscard]] std::vector<std::string> share_texts(const std::string& mine, uint32_t sequence,
                                                     Deadline deadline);
  [[nodiscard]] Support can_share(const FoldingDevice& device) const;
  [[nodiscard]] DevicePeers::Members members_here(const std::vector<std::string>& identities) const;
  [[nodiscard]] PeerCall describe(std::span<const PeerMessage> messages);

  std::shared_ptr<EngineState> state_;  // owners: this engine and those split from it
  SelectionSettings settings_;
  std::vector<int> members_;  // ranks of the transport
  int rank_;                  // among them
  int group_;
  std::vector<int> hosts_;  // of the members
  RankPlan rank_plan_;      // of the members
  Costs costs_;
  MethodLimits limits_;
  std::optional<CostModel> model_;
  Executor executor_;
  std::optional<SharedExecutor> shared_;
  std::optional<DeviceExecutor> on_device_;               // where ranks share memory
  std::vector<std::array<uint32_t, 2>> message_numbers_;  // by member: sent to it, received from it
  std::map<std::array<uint64_t, 5>, CachedPlan> plans_;
  CachedPlans last_;  // callers repeat their calls
};

}  // namespace gxp
