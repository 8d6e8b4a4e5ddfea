#include "lib/device/cuda_device.h"

#include <future>
#include <vector>

#include "lib/device/cuda_check.h"
#include "lib/device/cuda_stream.h"
#include "tests/catch.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;
Deadline soon() { return Deadline::after(30s); }

std::vector<float> read(Device& device, const Buffer& buffer) {
  std::vector<float> host(buffer.memory().bytes / sizeof(float));
  device.copy(memory_of(host), buffer.memory());
  return host;
}

// Sets every byte of `buffer` on `stream`.
Work set_bytes(Stream& stream, const Buffer& buffer, int value) {
  return {"set",
          [&stream, memory = buffer.memory(), value] {
            check_cuda(cudaMemsetAsync(memory.data, value, memory.bytes, native_stream(stream)),
                       "set bytes");
          },
          {}};
}

}  // namespace

TEST_CASE("GPU memory is zeroed, aligned, tracked, and keeps what is copied into it") {
  const auto device = make_cuda_device(0);
  const Buffer buffer = device->allocate(4099 * sizeof(float), MemoryKind::kParameters);
  CHECK(reinterpret_cast<uintptr_t>(buffer.memory().data) % 256 == 0);
  CHECK(device->tracker().live().total() == 4099 * sizeof(float));
  CHECK(read(*device, buffer) == std::vector<float>(4099));
  std::vector<float> values(4099, 2.5f);
  device->copy(buffer.memory(), memory_of(values));
  CHECK(read(*device, buffer) == values);
}

TEST_CASE("GPU memory is exported as a file of whole pages, in which it has its place") {
  const auto device = make_cuda_device(0);
  CHECK(device->bus_id().size() == std::string_view("0000:3b:00.0").size());
  if (const Support support = device->exports_memory(); !support) {
    WARN("skipped: " << support.reason);
    return;
  }
  const Buffer buffer = device->allocate(100000, MemoryKind::kWorkspace);
  const DmaBuf exported = device->export_memory(buffer.memory().slice(50000, 100));
  CHECK(exported.file.valid());
  CHECK(exported.offset == reinterpret_cast<uintptr_t>(buffer.memory().data + 50000) % 4096);
}

TEST_CASE("GPU memory that cannot be had is an error, and the GPU works on") {
  const auto device = make_cuda_device(0);
  CHECK_THROWS_AS(device->allocate(size_t{1} << 50, MemoryKind::kActivations), Error);
  const Buffer buffer = device->allocate(64, MemoryKind::kActivations);
  CHECK(read(*device, buffer) == std::vector<float>(16));
}

TEST_CASE("a GPU that does not exist cannot be opened") {
  CHECK_THROWS_AS(make_cuda_device(-1), Error);
  CHECK_THROWS_AS(make_cuda_device(4096), Error);
}

TEST_CASE("a GPU stream waits for another stream's event in each step anew") {
  const auto device = make_cuda_device(0);
  const Buffer source = device->allocate(64u << 20, MemoryKind::kWorkspace);
  const Buffer target = device->allocate(64u << 20, MemoryKind::kWorkspace);
  const auto first = device->make_stream("first");
  const auto second = device->make_stream("second");
  const auto written = device->make_event();
  const auto copied = device->make_event();
  const Work copy{"copy",
                  [&] {
                    check_cuda(cudaMemcpyAsync(target.memory().data, source.memory().data,
                                               source.memory().bytes, cudaMemcpyDeviceToDevice,
                                               native_stream(*second)),
                               "copy");
                  },
                  {}};
  const Work low = set_bytes(*first, source, 0);
  const Work high = set_bytes(*first, source, 0x3f);  // 0x3f3f3f3f is 0.747...
  for (int step = 0; step < 10; ++step) {
    first->wait(*copied);
    first->submit(step % 2 == 0 ? low : high);
    first->record(*written);
    second->wait(*written);
    second->submit(copy);
    second->record(*copied);
    second->synchronize(soon());
    CHECK((read(*device, target).back() > 0.5f) == (step % 2 == 1));
  }
}

TEST_CASE("a stream's copies are in order with its work, and finish waits for them") {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("offload");
  const Buffer buffer = device->allocate(1 << 20, MemoryKind::kWorkspace);
  const Buffer pinned = device->allocate_host(1 << 20);
  CHECK(device->tracker().live().total() == 1 << 20);
  std::byte last{1};
  const Work set = set_bytes(*stream, buffer, 0x3f);
  const Work fetch{"fetch",
                   [&] {
                     stream->copy(pinned.memory(), buffer.memory());
                     stream->finish(soon());
                     last = pinned.memory().data[pinned.memory().bytes - 1];
                   },
                   {}};
  stream->submit(set);
  stream->submit(fetch);
  stream->synchronize(soon());
  CHECK(last == std::byte{0x3f});
}

TEST_CASE("a repeated work is started twice and queued as it was recorded from then on") {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("compute");
  const Buffer buffer = device->allocate(1024, MemoryKind::kWorkspace);
  std::unique_ptr<Recording> recording;
  std::vector<bool> recorded;
  int value = 0;  // changes, against the rule, to tell what was queued
  const auto start = [&] { set_bytes(*stream, buffer, ++value).run(); };
  const auto otherwise = WithoutRecording::kFail;
  const Work again{
      "again", [&] { recorded.push_back(stream->repeat(recording, start, otherwise)); }, {}};
  const auto value_after = [&](int times) {
    for (int i = 0; i < times; ++i) stream->submit(again);
    stream->synchronize(soon());
    std::vector<unsigned char> bytes(1024);
    device->copy(memory_of(bytes), buffer.memory());
    return int(bytes.back());
  };
  CHECK(value_after(1) == 1);
  CHECK(value_after(1) == 2);
  device->copy(buffer.memory(), memory_of(std::vector<unsigned char>(1024)));
  CHECK(value_after(2) == 2);
  forget_recordings(*stream);
  CHECK(value_after(4) == 4);
  CHECK(recorded == std::vector<bool>{false, false, true, true, false, false, true, true});
}

TEST_CASE("a work that waits cannot be recorded, and the stream works on") {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("compute");
  const Buffer buffer = device->allocate(1024, MemoryKind::kWorkspace);
  std::unique_ptr<Recording> recording;
  const auto start = [&] {
    set_bytes(*stream, buffer, 1).run();
    stream->finish(soon());
  };
  const auto otherwise = WithoutRecording::kFail;
  const Work again{"again", [&] { stream->repeat(recording, start, otherwise); }, {}};
  stream->submit(again);
  CHECK_NOTHROW(stream->synchronize(soon()));
  stream->submit(again);
  CHECK_THROWS_WITH(stream->synchronize(soon()), Catch::Contains("finish what stream 'compute'"));
  const Work set = set_bytes(*stream, buffer, 0x3f);
  stream->submit(set);
  stream->synchronize(soon());
  CHECK(read(*device, buffer).back() > 0.5f);
}

TEST_CASE("a stream that may go on without recordings does so from the first that fails on") {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("compute");
  const Buffer buffer = device->allocate(1024, MemoryKind::kWorkspace);
  std::array<std::unique_ptr<Recording>, 2> recordings;
  int value = 0;
  bool waits = false;
  const auto start = [&] {
    set_bytes(*stream, buffer, ++value).run();
    if (waits) stream->finish(soon());
  };
  std::vector<bool> recorded;
  const Work both{"both",
                  [&] {
                    for (auto& recording : recordings)
                      recorded.push_back(stream->repeat(recording, start, WithoutRecording::kWarn));
                  },
                  {}};
  for (int step = 0; step < 3; ++step) {
    waits = step == 1;
    stream->submit(both);
    stream->synchronize(soon());
  }
  CHECK(recorded == std::vector<bool>(6, false));
  CHECK(value == 7);  // one call of which nothing was kept
  std::vector<unsigned char> bytes(1024);
  device->copy(memory_of(bytes), buffer.memory());
  CHECK(int(bytes.back()) == 7);
}

TEST_CASE("a work that blocks holds up its own stream alone") {
  const auto device = make_cuda_device(0);
  const auto comm = device->make_stream("comm");
  const auto compute = device->make_stream("compute");
  std::promise<void> opened;
  int blocked = 0;
  int runs = 0;
  const Work wait{
      "wait",
      [&] { blocked += opened.get_future().wait_for(30s) == std::future_status::ready; },
      {}};
  const Work open{"open", [&] { opened.set_value(), ++runs; }, {}};
  comm->submit(wait);
  compute->submit(open);
  compute->synchronize(soon());
  comm->synchronize(soon());
  CHECK(runs == 1);
  CHECK(blocked == 1);
}

TEST_CASE("a work's error is thrown once by synchronize, and the work after it is skipped") {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("compute");
  int runs = 0;
  const Work bad{"bad", [] { fail(ErrorKind::kDevice, "the cause"); }, {}};
  const Work count{"count", [&] { ++runs; }, {}};
  stream->submit(bad);
  stream->submit(count);
  CHECK_THROWS_WITH(stream->synchronize(soon()), "the cause");
  CHECK(runs == 0);
  CHECK_NOTHROW(stream->synchronize(soon()));
}

}  // namespace gxp
