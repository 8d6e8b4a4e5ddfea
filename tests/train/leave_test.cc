#include "lib/train/step/leave.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <thread>

#include "lib/base/fd.h"
#include "lib/train/step/program_runner.h"
#include "tests/catch.h"
#include "tests/program/sample_programs.h"
#include "tests/support/sim_device.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

// A stream of the simulated device whose last kernel never ends.
class EndlessStream final : public Stream {
 public:
  explicit EndlessStream(std::unique_ptr<Stream> simulated) : simulated_(std::move(simulated)) {}
  void submit(const Work& work) override { simulated_->submit(work); }
  void record(Event& event) override { simulated_->record(event); }
  void wait(Event& event) override { simulated_->wait(event); }
  void synchronize(Deadline deadline) override {
    std::this_thread::sleep_for(deadline.remaining());
    fail(ErrorKind::kDevice, "synchronise stream 'compute': the GPU has not finished");
  }

 private:
  std::unique_ptr<Stream> simulated_;
};

// The simulated device, on which what is computed never ends.
class EndlessDevice final : public Device {
 public:
  [[nodiscard]] std::string description() const override { return simulated_.description(); }
  [[nodiscard]] std::unique_ptr<Stream> make_stream(std::string_view name) override {
    auto stream = simulated_.make_stream(name);
    if (name != to_string(Lane::kCompute)) return stream;
    return std::make_unique<EndlessStream>(std::move(stream));
  }
  [[nodiscard]] std::unique_ptr<Event> make_event() override { return simulated_.make_event(); }

 protected:
  Memory allocate_raw(size_t bytes) override {
    return {static_cast<std::byte*>(std::calloc(1, bytes + 1)), bytes, MemorySpace::kHost};
  }
  void free_raw(Memory memory) noexcept override { std::free(memory.data); }

 private:
  SimDevice simulated_{1};
};

std::exception_ptr lost_peer() {
  return std::make_exception_ptr(Error(ErrorKind::kPeer, "receive from rank 1: it is gone"));
}

struct Ended {
  int code;  // -1: by a signal
  std::string errors;
};

// How a process ends that does `act` and then 0.
Ended run_process(const std::function<void()>& act) {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  Fd out(pipe[0]), in(pipe[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // nothing waits for ever
    ::dup2(in.get(), STDERR_FILENO);
    act();
    ::_exit(0);
  }
  in.reset();
  Ended ended{-1, {}};
  char block[512];
  for (ssize_t count = 0; (count = ::read(out.get(), block, sizeof block)) > 0;)
    ended.errors.append(block, size_t(count));
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

TEST_CASE("a failed run leaves when a stream does not end, and says what failed first") {
  EndlessDevice device;
  const auto comm = device.make_stream("comm"), compute = device.make_stream("compute");
  const std::array<Stream*, 3> streams = {comm.get(), nullptr, compute.get()};
  const Ended ended = run_process([&] {
    settle_or_leave(streams, Deadline::after(20ms), lost_peer());
    ::_exit(77);
  });
  CHECK(ended.code == exit_code(ErrorKind::kPeer));
  CHECK_THAT(ended.errors, Catch::Contains("stream 'compute': the GPU has not finished"));
  CHECK_THAT(ended.errors, Catch::EndsWith("gxp: error: receive from rank 1: it is gone\n"));
}

TEST_CASE("a failed run whose streams end is not left") {
  SimDevice device(1);
  const auto stream = device.make_stream("compute");
  const Work fails{"fails", [] { fail(ErrorKind::kDevice, "it failed"); }, {}};
  stream->submit(fails);
  const std::array<Stream*, 1> streams = {stream.get()};
  CHECK_NOTHROW(settle_or_leave(streams, Deadline::after(60s), lost_peer()));
}

TEST_CASE("a step whose peer is lost ends soon though a kernel never does", "[.long]") {
  const Ended ended = run_process([] {
    EndlessDevice device;
    const BuiltStep step = sample_step(2, 1, 1 << 20);
    const ProgramMemory memory(device, step.program);
    Lanes lanes(device);
    ProgramRunner runner(lanes, step.program, memory, [](const Op& op) -> std::function<void()> {
      if (op.lane != Lane::kComm) return [] {};
      return [] { std::rethrow_exception(lost_peer()); };
    });
    runner.run(Deadline::after(kComputeTimeout));
  });
  CHECK(ended.code == exit_code(ErrorKind::kPeer));
  CHECK_THAT(ended.errors, Catch::EndsWith("gxp: error: receive from rank 1: it is gone\n"));
}

}  // namespace
}  // namespace gxp
