#include "tests/collective/faulty_job.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/collective/communicator.h"
#include "lib/collective/flight/diagnosis.h"
#include "lib/transport/table/table.h"
#include "tests/transport/faulty.h"
#include "tests/transport/worlds.h"

namespace {

std::function<void()> before_copy;  // of this process, by CMA

}  // namespace

// In the place of the C library's.
extern "C" ssize_t process_vm_readv(pid_t process, const iovec* mine, unsigned long mine_count,
                                    const iovec* theirs, unsigned long theirs_count,
                                    unsigned long flags) {
  if (before_copy) before_copy();
  return syscall(SYS_process_vm_readv, process, mine, mine_count, theirs, theirs_count, flags);
}
extern "C" ssize_t process_vm_writev(pid_t process, const iovec* mine, unsigned long mine_count,
                                     const iovec* theirs, unsigned long theirs_count,
                                     unsigned long flags) {
  if (before_copy) before_copy();
  return syscall(SYS_process_vm_writev, process, mine, mine_count, theirs, theirs_count, flags);
}

namespace gxp {
namespace {

using Mishap = Scene::Mishap;
using namespace std::chrono_literals;

constexpr size_t kCount = 1000;             // elements, of a call by messages
constexpr size_t kSharedCount = 256 << 10;  // elements, of one on shared memory
constexpr size_t kPageBytes = 4096;

double now() {
  return std::chrono::duration<double>(Deadline::Clock::now().time_since_epoch()).count();
}

// What the victim's signal handler and transport do.
struct Blow {
  std::atomic<double>* struck_s;
  int signal;
};
Blow blow;  // of this process

void strike() {
  *blow.struck_s = now();
  ::kill(::getpid(), blow.signal);
}
void strike_at_touch(int /*signal*/) { strike(); }

// Memory in which a place can end who touches it.
class TrappedBuffer {
 public:
  explicit TrappedBuffer(size_t bytes) : bytes_(bytes) {
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    GXP_ASSERT(pages != MAP_FAILED);
    data_ = static_cast<std::byte*>(pages);
    std::memset(data_, 0, bytes);
  }
  TrappedBuffer(const TrappedBuffer&) = delete;
  TrappedBuffer& operator=(const TrappedBuffer&) = delete;
  ~TrappedBuffer() { munmap(data_, bytes_); }
  void guard(Memory part, uint64_t at) const {
    const auto place = size_t(part.data - data_) + part.bytes / kPlaces * at;
    if (part.bytes > 0) mprotect(data_ + place / kPageBytes * kPageBytes, kPageBytes, PROT_NONE);
  }
  [[nodiscard]] Memory part(Range range, DType dtype) const {
    const Memory all{data_, bytes_, MemorySpace::kHost};
    return all.slice(range.begin * size_of(dtype), range.count * size_of(dtype));
  }

 private:
  size_t bytes_;
  std::byte* data_;
};

}  // namespace

std::string_view to_string(Scene::Mishap mishap) {
  constexpr std::array<std::string_view, 6> kNames = {"errs in nothing", "skips", "is late",
                                                      "counts wrongly",  "stops", "is killed"};
  return kNames[size_t(mishap)];
}

std::string to_string(const Scene& scene) {
  return fmt::format("{} {} by {}: rank {} {} at {}", scene.transport,
                     to_string(scene.algorithm->collective), scene.algorithm->name, scene.victim,
                     to_string(scene.mishap), scene.at);
}

bool in_shared_memory(const Scene& scene) {
  return scene.transport.starts_with("shm") && scene.algorithm->medium == Medium::kSharedMemory;
}

bool through_tiles(const Scene& scene) {
  return scene.transport == "shm mapped" && in_shared_memory(scene) &&
         scene.algorithm->collective != Collective::kBarrier;
}

// Counts what this rank starts once it is armed, and ends the process before number `at`.
class FaultyJob::Striker final : public ForwardingTransport {
 public:
  Striker(std::unique_ptr<Transport> inner, std::optional<uint64_t> at, uint64_t& count)
      : ForwardingTransport(std::move(inner)), at_(at), count_(count) {}
  void arm() { armed_ = true; }
  void disarm() { armed_ = false; }
  void count(size_t bytes) {
    if (armed_ && bytes > 0 && count_++ == at_) strike();
  }
  Ticket send(int peer, Tag tag, ConstMemory data) override {
    count(data.bytes);
    return ForwardingTransport::send(peer, tag, data);
  }
  Ticket recv(int peer, Tag tag, Memory data) override {
    count(data.bytes);
    return ForwardingTransport::recv(peer, tag, data);
  }
  Ticket recv_and_combine(int peer, Tag tag, Memory target, const Combiner& combiner) override {
    count(target.bytes);
    return ForwardingTransport::recv_and_combine(peer, tag, target, combiner);
  }

 private:
  bool armed_ = false;
  std::optional<uint64_t> at_;
  uint64_t& count_;
};

FaultyJob::FaultyJob(const Scene& scene) : scene_(scene) {
  void* pages =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  GXP_ASSERT(pages != MAP_FAILED);
  board_ = new (pages) Board{};
  Fd listener = listen_tcp({"127.0.0.1", 0});
  endpoint_ = local_endpoint(listener.get());
  for (int rank = 0; rank < kRanks; ++rank) {
    processes_.push_back(pid_t(check_sys(::fork(), "start a rank")));
    if (processes_.back() == 0) be_rank(rank, std::move(listener));
  }
}

FaultyJob::~FaultyJob() {
  for (const pid_t process : processes_) {
    if (process == 0) continue;
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }
  munmap(board_, sizeof(Board));
}

void FaultyJob::be_rank(int rank, Fd listener) {
  set_log_level(LogLevel::kError);
  const bool strikes = scene_.mishap == Mishap::kStop || scene_.mishap == Mishap::kKill;
  if (strikes && rank == scene_.victim) {
    blow = {&board_->struck_s, scene_.mishap == Mishap::kStop ? SIGSTOP : SIGKILL};
    std::signal(SIGSEGV, strike_at_touch);
  }
  try {
    take_part(rank, std::move(listener));
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", rank, error.what());
  }
  ::_exit(0);
}

void FaultyJob::take_part(int rank, Fd listener) {
  std::unique_ptr<StoreServer> server;
  if (rank == 0) server = std::make_unique<StoreServer>(std::move(listener), kRanks, secret_);
  listener.reset();
  FlightRecorder recorder(rank, kRanks);
  Store store(endpoint_, rank, kRanks, secret_, soon());
  connect_diagnosis(store, server.get(), recorder, "");
  const auto device = make_cpu_device();
  const TransportContext context{.rank = rank,
                                 .world_size = kRanks,
                                 .store = &store,
                                 .secret = &secret_,
                                 .deadline = soon(),
                                 .tcp = {.connections = 1, .buffer_bytes = 0},
                                 .use_cma = scene_.transport != "shm mapped"};
  Ending& ending = board_->ranks[size_t(rank)];
  const bool strikes = blow.struck_s != nullptr && !through_tiles(scene_);
  const std::string name = scene_.transport.substr(0, scene_.transport.find(' '));
  auto transport =
      std::make_unique<Striker>(make_transport(name, context),
                                strikes ? std::optional(scene_.at) : std::nullopt, ending.moves);
  Striker& striker = *transport;
  before_copy = [&striker] { striker.count(1); };
  const bool by_cma = in_shared_memory(scene_) && !through_tiles(scene_) &&
                      scene_.algorithm->collective != Collective::kBarrier;
  const CommunicatorOptions options{
      .selection = {.algorithm = std::string(by_cma ? "cma" : scene_.algorithm->name),
                    .layout_invariant = false,
                    .channels = 1,
                    .segment_bytes = 64 << 10},
      .timeout = std::chrono::milliseconds(int(1000 * scene_.timeout_s)),
      .reporting = {&recorder, &store}};
  Communicator comm(std::move(transport), *device, options);
  act(rank, comm, striker);
  ending.ended = true;
  store.close();
  if (server) server->wait_goodbyes(Deadline::after(500ms));
}

void FaultyJob::act(int rank, Communicator& comm, Striker& striker) {
  Ending& ending = board_->ranks[size_t(rank)];
  double entered = now();
  try {
    comm.barrier();
    striker.arm();
    call(rank, comm, entered);
    striker.disarm();
    entered = now();
    comm.barrier();
  } catch (const Error& error) {
    ending.seconds = now();
    ending.late_s = ending.seconds - entered - scene_.timeout_s;
    const std::string text = error.what();
    text.copy(ending.text.data(), ending.text.size() - 1);
  }
}

void FaultyJob::call(int rank, Communicator& comm, double& entered) {
  const bool shared = in_shared_memory(scene_);
  Call call{.collective = scene_.algorithm->collective,
            .dtype = DType::kF32,
            .count = shared ? kSharedCount : kCount,
            .root = 1};
  const TrappedBuffer in(2 * call.count * sizeof(float));
  const TrappedBuffer out(2 * call.count * sizeof(float));
  if (rank == scene_.victim && scene_.mishap == Mishap::kCount) call.count *= 2;
  if (rank == scene_.victim && scene_.mishap == Mishap::kSkip) return;
  if (rank == scene_.victim && scene_.mishap == Mishap::kLate)
    ::usleep(useconds_t(1e6 * (scene_.timeout_s + 0.7)));
  const Extents extents = extents_of(call, rank, kRanks);
  const Memory input = in.part(extents.input, call.dtype);
  const Memory output = out.part(extents.output, call.dtype);
  if (blow.struck_s != nullptr && through_tiles(scene_)) {
    in.guard(input, scene_.at);
    out.guard(output, scene_.at);
  }
  entered = now();
  comm.run(call, input, output);
}

bool FaultyJob::survives(int rank) const {
  return rank != scene_.victim ||
         (scene_.mishap != Mishap::kStop && scene_.mishap != Mishap::kKill);
}

const std::array<FaultyJob::Ending, FaultyJob::kRanks>& FaultyJob::finish() {
  const Deadline deadline = Deadline::after(20s);
  for (int rank = 0; rank < kRanks; ++rank) {
    pid_t& process = processes_[size_t(rank)];
    while (survives(rank) && process != 0) {
      if (::waitpid(process, nullptr, WNOHANG) != 0 || deadline.expired()) process = 0;
      ::usleep(1000);
    }
  }
  return board_->ranks;
}

std::string FaultyJob::judge() {
  finish();
  const bool strikes = scene_.mishap == Mishap::kStop || scene_.mishap == Mishap::kKill;
  if (strikes && board_->struck_s == 0) return "the mishap has not happened";
  const std::string blame = fmt::format("rank {}: ", scene_.victim);
  std::string verdict;
  for (int rank = 0; rank < kRanks; ++rank) {
    if (!survives(rank)) continue;
    const Ending& ending = board_->ranks[size_t(rank)];
    const std::string text = ending.text.data();
    if (!ending.ended) return fmt::format("rank {} has not ended", rank);
    if (verdict.empty()) verdict = text;
    if (!text.starts_with(blame)) return fmt::format("rank {} says '{}'", rank, text);
    if (text != verdict) return fmt::format("'{}' and '{}'", verdict, text);
  }
  const double limit = scene_.mishap == Mishap::kKill ? 1 : 2;
  const double seconds = seconds_to_verdict();
  return seconds <= limit ? "" : fmt::format("it took {:.3f} s: '{}'", seconds, verdict);
}

double FaultyJob::seconds_to_verdict() const {
  double longest = -scene_.timeout_s;
  for (int rank = 0; rank < kRanks; ++rank) {
    if (!survives(rank)) continue;
    const Ending& ending = board_->ranks[size_t(rank)];
    const double after_death = ending.seconds - board_->struck_s;
    longest = std::max(longest, scene_.mishap == Mishap::kKill ? after_death : ending.late_s);
  }
  return longest;
}

}  // namespace gxp
