// Messages in the memory of a fake GPU, over the fake of libibverbs.
#include <infiniband/verbs.h>

#include <atomic>
#include <string>
#include <vector>

#include "lib/transport/verbs/verbs.h"
#include "lib/transport/verbs/verbs_context.h"
#include "tests/catch.h"
#include "tests/transport/fake_gpu.h"
#include "tests/transport/mishaps.h"

using namespace gxp;

namespace {

struct GpuDirectCase {
  std::string name;
  GpuDirectFacts facts;
  bool needs_flush = true;
  std::string words;  // of the line that tells why
};

std::vector<GpuDirectCase> ways() {
  const GpuDirectFacts by_file{
      .modules_known = true, .driver_is_open = true, .linux_takes_dma_buf = true};
  const GpuDirectFacts by_module{
      .modules_known = true, .peer_module = "nvidia_peermem", .peer_module_registered = true};
  return {{"DMA-BUF", by_file, true, "; GPUDirect RDMA on: by DMA-BUF"},
          {"peer memory", by_module, true, "; GPUDirect RDMA on: by nvidia_peermem"},
          {"no flush", by_module, false, "; GPUDirect RDMA on: by nvidia_peermem"}};
}

TransportContext context_on(const GpuDirectCase& way, const World& world, Store& store,
                            FakeGpu& gpu) {
  TransportContext context = world.context(store);
  context.gpu = &gpu;
  change_verbs(context).place = [&way] {
    return VerbsPlace{.ports = {"fake0:1", "fake1:1"},
                      .why = "nearest",
                      .gpu_direct = way.facts,
                      .needs_flush = way.needs_flush};
  };
  return context;
}

// body(transport, gpu) on each of two ranks, which have a host and a GPU each; their errors.
std::vector<std::string> run_on_gpus(const GpuDirectCase& way,
                                     const std::function<void(Transport&, Device&)>& body) {
  World world("verbs rails", 2);
  return run_all(2, [&](int rank) {
    FakeGpu gpu(way.name != "DMA-BUF");
    const auto store = world.join_store(rank);
    {
      const auto transport = make_transport("verbs", context_on(way, world, *store, gpu));
      body(*transport, gpu);
      store->barrier("end", soon());
    }
    store->close();
  });
}

// What rank 0 logs of the choice.
std::string line_of(const GpuDirectCase& way) {
  World world("verbs rails", 2);
  std::string line;
  run_all(2, [&](int rank) {
    FakeGpu gpu;
    const auto store = world.join_store(rank);
    TransportContext context = context_on(way, world, *store, gpu);
    context.hosts = {"host 0", "host 1"};
    survey_verbs(context);
    if (rank == 0) line = verbs_reaches(context, 0, 1).reason;
    store->close();
  });
  return line;
}

std::vector<std::byte> on_host(Device& gpu, ConstMemory memory) {
  std::vector<std::byte> bytes(memory.bytes);
  gpu.copy(memory_of(bytes), memory);
  return bytes;
}

Buffer on_gpu(Device& gpu, const std::vector<std::byte>& bytes) {
  Buffer buffer = gpu.allocate(bytes.size() + 3, MemoryKind::kWorkspace);
  gpu.copy(buffer.memory().slice(3, bytes.size()), memory_of(bytes));  // at an odd address
  return buffer;
}

}  // namespace

TEST_CASE("messages in GPU memory arrive, between GPUs and between GPU and host",
          "[verbs][verbs_gpu]") {
  const Mishaps fake;
  if (!fake) return;
  const GpuDirectCase way = GENERATE(from_range(ways()));
  const size_t bytes = GENERATE(size_t{1}, size_t{5000}, size_t{300001});
  const bool shuffles = GENERATE(false, true);
  CAPTURE(way.name, bytes, shuffles);
  fake->shuffle(shuffles);
  std::atomic<int> right = 0;
  const auto errors = run_on_gpus(way, [&](Transport& transport, Device& gpu) {
    if (!transport.supports_memory(MemorySpace::kCuda)) return;
    const int me = transport.rank();
    const int peer = 1 - me;
    const auto data = payload(bytes, me, peer);
    const Buffer leaving = on_gpu(gpu, data);
    const Buffer arriving = gpu.allocate(bytes + 5, MemoryKind::kWorkspace);
    const Buffer from_host = gpu.allocate(bytes, MemoryKind::kWorkspace);
    std::vector<std::byte> to_host(bytes);
    const Memory got = arriving.memory().slice(5, bytes);
    const ConstMemory sent = ConstMemory(leaving.memory()).slice(3, bytes);
    std::vector<Ticket> tickets{transport.recv(peer, 1, got),
                                transport.recv(peer, 2, from_host.memory()),
                                transport.recv(peer, 3, memory_of(to_host)),
                                transport.send(peer, 1, sent),
                                transport.send(peer, 2, memory_of(data)),
                                transport.send(peer, 3, sent)};
    for (const Ticket ticket : tickets) transport.wait(ticket, soon());
    const auto expected = payload(bytes, peer, me);
    right += on_host(gpu, got) == expected && on_host(gpu, from_host.memory()) == expected &&
             to_host == expected;
  });
  CHECK(errors == none(2));
  CHECK(right == 2);
  CHECK((fake->flush_reads() > 0) == way.needs_flush);
  CHECK(contains(line_of(way), way.words));
}

TEST_CASE("a flush of GPU memory that fails is told", "[verbs][verbs_gpu]") {
  const Mishaps fake;
  if (!fake) return;
  bool told = false;
  for (int after = 0; after < 12 && !told; ++after) {  // one of the first requests is a flush
    CAPTURE(after);
    const auto errors = run_on_gpus(ways()[0], [&](Transport& transport, Device& gpu) {
      constexpr size_t kBytes = 5000;
      if (transport.rank() == 1) {
        const Buffer data = gpu.allocate(kBytes, MemoryKind::kWorkspace);
        transport.wait(transport.recv(0, 1, data.memory()), soon());
      } else {
        fake->fail_request(after, IBV_WC_REM_ACCESS_ERR);
        const Buffer data = on_gpu(gpu, payload(kBytes, 0, 1));
        transport.wait(transport.send(1, 1, data.memory().slice(3, kBytes)), soon());
      }
    });
    told = contains(errors[1], "flush GPU memory through ");
  }
  CHECK(told);
}

TEST_CASE("a message that came before its receive is copied into GPU memory",
          "[verbs][verbs_gpu]") {
  const Mishaps fake;
  if (!fake) return;
  const size_t bytes = GENERATE(size_t{100}, size_t{100000});
  std::atomic<int> right = 0;
  const auto errors = run_on_gpus(ways()[0], [&](Transport& transport, Device& gpu) {
    if (transport.rank() == 0) {
      const Buffer first = on_gpu(gpu, payload(bytes, 0, 1, 1));
      const Buffer second = on_gpu(gpu, payload(bytes, 0, 1, 2));
      const Ticket a = transport.send(1, 1, first.memory().slice(3, bytes));
      const Ticket b = transport.send(1, 2, second.memory().slice(3, bytes));
      transport.wait(a, soon());
      transport.wait(b, soon());
      return;
    }
    const Buffer data = gpu.allocate(2 * bytes, MemoryKind::kWorkspace);
    transport.wait(transport.recv(0, 2, data.memory().slice(bytes, bytes)), soon());
    transport.wait(transport.recv(0, 1, data.memory().slice(0, bytes)), soon());
    right += on_host(gpu, data.memory().slice(0, bytes)) == payload(bytes, 0, 1, 1);
    right += on_host(gpu, data.memory().slice(bytes, bytes)) == payload(bytes, 0, 1, 2);
  });
  CHECK(errors == none(2));
  CHECK(right == 2);
}

TEST_CASE("without GPUDirect RDMA there are messages in host memory alone, and the line says why",
          "[verbs][verbs_gpu]") {
  const Mishaps fake;
  if (!fake) return;
  GpuDirectCase way = ways()[0];
  SECTION("the NIC takes no DMA-BUF") {
    fake->set_dma_buf(false);
    way.words = "; GPUDirect RDMA off: neither nvidia-peermem nor DMA-BUF is available (the NIC's";
  }
  SECTION("the NIC is too far") {
    way.facts.too_far = "SYS is beyond PXB";
    way.words = "; GPUDirect RDMA off: SYS is beyond PXB";
  }
  std::atomic<int> host_only = 0;
  const auto errors = run_on_gpus(way, [&](Transport& transport, Device&) {
    host_only += !transport.supports_memory(MemorySpace::kCuda);
  });
  CHECK(errors == none(2));
  CHECK(host_only == 2);
  CHECK(contains(line_of(way), way.words));
}
