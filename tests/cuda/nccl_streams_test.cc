// Engine nccl in stream order, on emulated GPUs whose work runs as late as CUDA allows.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "tests/catch.h"
#include "tests/collective/calls.h"
#include "tests/cuda/nccl_ranks.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

// A rank's GPU as a caller uses it: a stream, memory, and pinned memory of the host.
struct Caller {
  explicit Caller(Communicator& comm, size_t floats = 1000)
      : device(make_cuda_device(comm.rank())),
        data(device->allocate(floats * sizeof(float), MemoryKind::kGradients)),
        host(device->allocate_host(floats * sizeof(float))),
        stream(device->make_stream("comm")) {
    stream->set_watch([&comm] { comm.check(); });
  }
  [[nodiscard]] float* values() const { return reinterpret_cast<float*>(host.memory().data); }
  void fill(float value) const {
    std::fill_n(values(), host.memory().bytes / sizeof(float), value);
  }
  void all_reduce(Communicator& comm) const {
    const PlacedCall call = in_place({.collective = Collective::kAllReduce, .dtype = DType::kF32},
                                     data.memory(), comm.rank(), comm.world_size());
    comm.enqueue(call.call, call.input, call.output, *stream);
  }
  // Until it is opened, the stream stands still.
  void close_gate(std::atomic<bool>& open) const {
    auto* const native = static_cast<cudaStream_t>(native_stream(*stream));
    static_cast<void>(emulation::enqueue_until(native, [&open] { return open.load(); }));
  }

  std::unique_ptr<Device> device;
  Buffer data;
  Buffer host;
  std::unique_ptr<Stream> stream;
};

void require_none(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) REQUIRE(problem == "");
}

std::string text_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a queued call takes its place in its stream, and the host waits for nothing") {
  require_none(run_over_nccl(3, [](Communicator& comm) -> std::string {
    const Caller caller(comm);
    std::atomic<bool> open = false;
    caller.close_gate(open);
    caller.fill(float(comm.rank() + 1));
    caller.stream->copy(caller.data.memory(), caller.host.memory());
    for (int i = 0; i < 3; ++i) caller.all_reduce(comm);  // 6, 18, 54
    caller.stream->copy(caller.host.memory(), caller.data.memory());
    std::this_thread::sleep_for(10ms);  // the watch has looked
    if (caller.values()[7] != float(comm.rank() + 1)) return "it ran before its turn";
    open = true;
    caller.stream->finish(soon());
    return caller.values()[7] == 54 ? "" : fmt::format("{}, not 54", caller.values()[7]);
  }));
}

TEST_CASE("an event that is recorded behind a queued call comes after it") {
  require_none(run_over_nccl(2, [](Communicator& comm) -> std::string {
    const Caller caller(comm);
    caller.fill(1);
    const auto other = caller.device->make_stream("compute");
    const auto event = caller.device->make_event();
    const Work call{"call",
                    [&] {
                      caller.stream->copy(caller.data.memory(), caller.host.memory());
                      caller.all_reduce(comm);
                    },
                    {}};
    const Work read{"read", [&] { other->copy(caller.host.memory(), caller.data.memory()); }, {}};
    caller.stream->submit(call);
    caller.stream->record(*event);
    other->wait(*event);
    other->submit(read);
    other->synchronize(soon());
    return caller.values()[3] == 2 ? "" : fmt::format("{}, not 2", caller.values()[3]);
  }));
}

TEST_CASE("a wait ends with what the stream's watch throws, and the way out of a run goes on") {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("compute");
  std::atomic<bool> open = false;
  static_cast<void>(emulation::enqueue_until(static_cast<cudaStream_t>(native_stream(*stream)),
                                             [&open] { return open.load(); }));
  stream->set_watch([] { fail(ErrorKind::kPeer, "rank 1 is gone"); });
  CHECK(text_of([&] { stream->finish(soon()); }) == "rank 1 is gone");
  CHECK(text_of([&] { stream->synchronize(soon()); }) == "rank 1 is gone");
  const auto stuck = stream->settle(Deadline::after(20ms));
  REQUIRE(stuck);
  CHECK_THAT(*stuck, Catch::Contains("stream 'compute': the GPU has not finished after 0.02 s"));
  open = true;
  CHECK_FALSE(stream->settle(soon()));
}

TEST_CASE("queued calls of several groups have the results of calls that are waited for") {
  const int world_size = GENERATE(1, 2, 4);
  require_none(run_over_nccl(world_size, [](Communicator& comm) -> std::string {
    const auto part = comm.split(comm.rank() % 2, -comm.rank());
    for (const size_t count : {size_t{0}, size_t{1}, size_t{4}, size_t{67}}) {
      for (const Collective collective : collectives()) {
        for (Communicator* group : {&comm, part.get()}) {
          Call call{.collective = collective, .dtype = DType::kI32, .count = count};
          if (collective == Collective::kBarrier) continue;
          if (collective == Collective::kAllToAll)
            call.count -= call.count % size_t(group->world_size());
          const Extents extents = extents_of(call, group->rank(), group->world_size());
          const Caller caller(comm, 300);
          std::vector<int32_t> data(call.count);
          for (size_t i = 0; i < data.size(); ++i)
            data[i] = int32_t(input_value(group->rank(), i, call.dtype));
          std::vector<int32_t> expected(data);
          const auto part_of = [](Memory all, Range range) {
            return all.slice(4 * range.begin, 4 * range.count);
          };
          group->run(call, part_of(memory_of(data), extents.input),
                     part_of(memory_of(expected), extents.output));
          // The input is in the lower half, the output in the upper one.
          const Memory in = caller.data.memory().slice(0, data.size() * 4);
          const Memory out = caller.data.memory().slice(600, data.size() * 4);
          caller.stream->copy(in, memory_of(data));
          caller.stream->copy(out, memory_of(data));
          group->enqueue(call, part_of(in, extents.input), part_of(out, extents.output),
                         *caller.stream);
          std::vector<int32_t> found(call.count);
          caller.stream->copy(memory_of(found), out);
          caller.stream->finish(soon());
          comm.check();
          if (found != expected) return "wrong: " + to_string(call);
        }
      }
    }
    return "";
  }));
}

TEST_CASE("a queued call's time starts when its GPU comes to it") {
  require_none(run_over_nccl(2,
                             [](Communicator& comm) -> std::string {
                               const Caller caller(comm);
                               std::atomic<bool> open = false;
                               caller.close_gate(open);
                               caller.all_reduce(comm);
                               std::this_thread::sleep_for(400ms);
                               open = true;
                               caller.stream->finish(soon());
                               comm.barrier();
                               return "";
                             },
                             {.timeout = 200ms}));
}

TEST_CASE("a rank that does not come to a queued call is named, and the streams end") {
  std::vector<std::string> after(2);
  const auto texts = run_over_nccl(2,
                                   [&](Communicator& comm) -> std::string {
                                     const Caller caller(comm);
                                     comm.barrier();
                                     if (comm.rank() == 1)
                                       return text_of([&] {
                                         for (;;) comm.check();
                                       });
                                     caller.all_reduce(comm);
                                     const std::string text =
                                         text_of([&] { caller.stream->finish(soon()); });
                                     if (caller.stream->settle(soon()))
                                       return "the stream did not end";
                                     after[0] = text_of([&] { comm.barrier(); });
                                     return text;
                                   },
                                   {.timeout = 100ms});
  for (const std::string& text : texts) {
    CHECK_THAT(text, Catch::Contains("rank 1: it has not entered all-reduce 1 (1000 f32, sum)"));
    CHECK_THAT(text, Catch::Contains("its last operation: barrier 0"));
  }
  CHECK_THAT(after[0], Catch::Contains("not started, an earlier call failed"));
}

TEST_CASE("what NCCL tells of another rank ends queued calls") {
  NcclRanks ranks;
  ranks.controls.fail_at = 3;
  const auto texts = run_over_nccl(
      2,
      [](Communicator& comm) -> std::string {
        const Caller caller(comm);
        for (int i = 0; i < 8; ++i) {
          const std::string text = text_of([&] {
            caller.all_reduce(comm);
            caller.stream->finish(soon());
          });
          if (text != "nothing was thrown") return text;
        }
        return "no failure";
      },
      ranks);
  for (const std::string& text : texts) CHECK_THAT(text, Catch::Contains("fake failure: no cable"));
}

TEST_CASE("memory that is kept is registered until its end: as a window where peers could map it") {
  std::mutex mutex;
  std::map<std::string, int> live;
  NcclRanks ranks;
  ranks.controls.on_register = [&](const std::string& kind, int change) {
    const std::lock_guard lock(mutex);
    live[kind] += change;
  };
  // What is live of a kind while all ranks wait.
  const auto count = [&](Communicator& comm, const std::string& kind) {
    comm.barrier();
    const std::unique_lock lock(mutex);
    return live[kind];
  };
  std::vector<std::array<int, 3>> seen(2);  // windows; buffers before and after
  require_none(run_over_nccl(
      2,
      [&](Communicator& comm, Device& device) -> std::string {
        auto& own = seen[size_t(comm.rank())];
        const Buffer mapped = device.allocate_shareable(8192, MemoryKind::kGradients);
        const Buffer ordinary = device.allocate(8192, MemoryKind::kGradients);
        const KeptMemory window = comm.keep(mapped.memory());
        comm.all_reduce(mapped.memory(), DType::kF32, ReduceOp::kSum);
        own[0] = count(comm, "window");
        own[1] = count(comm, "buffer");
        comm.barrier();
        const KeptMemory buffer = comm.keep(ordinary.memory());
        own[2] = count(comm, "buffer");
        comm.barrier();
        return "";
      },
      ranks));
  for (const auto& [windows, before, after] : seen) {
    CHECK(windows == 2);
    CHECK(after == before + 2);
  }
  for (const auto& [kind, left] : live) CHECK(left == 0);
}

TEST_CASE("an abort ends a queued call, and a call on host memory cannot be queued") {
  const auto texts = run_over_nccl(2, [](Communicator& comm) -> std::string {
    const Caller caller(comm);
    std::vector<float> host(10);
    const Call call{.collective = Collective::kAllReduce, .dtype = DType::kF32, .count = 10};
    const std::string refused =
        text_of([&] { comm.enqueue(call, memory_of(host), memory_of(host), *caller.stream); });
    if (!contains(refused, "queues calls on device memory only")) return refused;
    comm.barrier();
    if (comm.rank() == 1)
      return text_of([&] {
        for (;;) comm.check();
      });
    caller.all_reduce(comm);
    comm.abort("enough");
    return text_of([&] { caller.stream->finish(soon()); });
  });
  for (const std::string& text : texts) CHECK_THAT(text, Catch::Contains("enough"));
}

}  // namespace gxp
