#include "tests/support/sim_device.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <random>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "tests/support/race_detector.h"

namespace gxp {
namespace {

// A point in a stream's order, and all that is over once it is passed.
struct SimEvent final : Event {
  bool recorded = false;
  size_t stream = 0;
  uint64_t point = 0;
  VectorClock clock;
};

// A work to run, or a point of another stream to wait for.
struct Entry {
  const Work* work = nullptr;
  size_t stream = 0;
  uint64_t point = 0;
};

struct Lane {
  std::string name;
  VectorClock clock;  // of the last work submitted
  std::deque<Entry> queue;
  uint64_t queued = 0;
  uint64_t done = 0;
  std::exception_ptr error;
};

}  // namespace

struct SimDevice::Schedule {
  explicit Schedule(uint64_t the_seed) : seed(the_seed), random(the_seed) {}

  void push(Lane& lane, const Entry& entry) {
    lane.queue.push_back(entry);
    ++lane.queued;
  }
  [[nodiscard]] bool runnable(const Lane& lane) const {
    if (lane.queue.empty()) return false;
    const Entry& entry = lane.queue.front();
    return entry.work != nullptr || lanes[entry.stream].done >= entry.point;
  }
  // With some seeds mostly the lane that ran last, so that lanes run far ahead of each other, too.
  size_t choose() {
    if (runnable(lanes[current]) && random() % (1 + seed % 8) != 0) return current;
    std::vector<size_t> ready;
    for (size_t i = 0; i < lanes.size(); ++i) {
      if (runnable(lanes[i])) ready.push_back(i);
    }
    GXP_ASSERT(!ready.empty());  // a wait's point was queued before the wait: there is no circle
    current = ready[random() % ready.size()];
    return current;
  }
  void run_one() {
    const size_t chosen = choose();
    const Entry entry = lanes[chosen].queue.front();
    lanes[chosen].queue.pop_front();
    try {
      if (entry.work != nullptr && !lanes[chosen].error) entry.work->run();
    } catch (...) {
      lanes[chosen].error = std::current_exception();
    }
    ++lanes[chosen].done;
  }

  uint64_t seed;
  std::mt19937_64 random;
  std::deque<Lane> lanes;  // one per stream ever made; a destroyed stream's is empty
  size_t current = 0;
  VectorClock host;  // what the caller has waited for
  RaceDetector races;
  std::string race;  // the first one's report
  int buffers = 0;

  class SimStream;
};

class SimDevice::Schedule::SimStream final : public Stream {
 public:
  SimStream(Schedule& schedule, std::string_view name)
      : schedule_(schedule), index_(schedule.lanes.size()), lane_(schedule.lanes.emplace_back()) {
    lane_.name = name;
  }
  ~SimStream() override {
    lane_.queue.clear();
    lane_.done = lane_.queued;
  }
  SimStream(const SimStream&) = delete;
  SimStream& operator=(const SimStream&) = delete;

  void submit(const Work& work) override {
    schedule_.push(lane_, {&work, 0, 0});
    lane_.clock.join(schedule_.host);
    lane_.clock.tick(index_);
    auto race = schedule_.races.add(work, index_, lane_.name, lane_.clock);
    if (race && schedule_.race.empty()) schedule_.race = std::move(*race);
  }

  void record(Event& event) override {
    auto& point = dynamic_cast<SimEvent&>(event);
    point.recorded = true;
    point.stream = index_;
    point.point = lane_.queued;
    point.clock = lane_.clock;
  }

  void wait(Event& event) override {
    const auto& point = dynamic_cast<const SimEvent&>(event);
    if (!point.recorded) return;
    schedule_.push(lane_, {nullptr, point.stream, point.point});
    lane_.clock.join(point.clock);
  }

  void synchronize(Deadline) override {
    if (!schedule_.race.empty()) fail(ErrorKind::kInternal, "{}", schedule_.race);
    while (!lane_.queue.empty()) schedule_.run_one();
    schedule_.host.join(lane_.clock);
    if (lane_.error) std::rethrow_exception(std::exchange(lane_.error, nullptr));
  }

 private:
  Schedule& schedule_;
  const size_t index_;
  Lane& lane_;
};

SimDevice::SimDevice(uint64_t seed) : schedule_(std::make_unique<Schedule>(seed)) {}
SimDevice::~SimDevice() = default;

std::string SimDevice::description() const {
  return fmt::format("simulated, seed {}", schedule_->seed);
}

std::unique_ptr<Stream> SimDevice::make_stream(std::string_view name) {
  return std::make_unique<Schedule::SimStream>(*schedule_, name);
}

std::unique_ptr<Event> SimDevice::make_event() { return std::make_unique<SimEvent>(); }

void SimDevice::name_memory(ConstMemory memory, std::string name) {
  schedule_->races.name(memory, std::move(name));
}

Memory SimDevice::allocate_raw(size_t bytes) {
  if (bytes == 0) return {};
  const size_t padded = round_up(bytes, 64);
  void* data = padded < bytes ? nullptr : std::aligned_alloc(64, padded);
  if (data == nullptr) return {nullptr, bytes, MemorySpace::kHost};
  std::memset(data, 0, bytes);
  const Memory memory{static_cast<std::byte*>(data), bytes, MemorySpace::kHost};
  name_memory(memory, fmt::format("buffer {}", ++schedule_->buffers));
  return memory;
}

void SimDevice::free_raw(Memory memory) noexcept {
  schedule_->races.forget(memory);
  std::free(memory.data);
}

}  // namespace gxp
