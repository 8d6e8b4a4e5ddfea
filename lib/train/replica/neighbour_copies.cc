#include "lib/train/replica/neighbour_copies.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "lib/ckpt/own_files.h"
#include "lib/collective/communicator.h"
#include "lib/net/store/facts.h"
#include "lib/train/replica/host_replicas.h"
#include "lib/transport/transport.h"

namespace gxp {
namespace {

constexpr size_t kChunkBytes = size_t{4} << 20;

}  // namespace

// What the thread works on.
struct NeighbourCopies::Job {
  std::string name;  // of this attempt
  ReplicaPlaces places;
  HostReplicas here{places.directory};
  std::vector<bool> files;
  std::chrono::milliseconds timeout;
  int rank;
  int world_size;
  StagedState staged;
  std::vector<ReplicaPart> frozen;  // this rank's and the neighbour's, once they are here
  std::vector<std::byte> leaving, arriving;

  void copy(const std::stop_token& stop);
  // None once `stop` is requested.
  std::optional<ReplicaPart> write(bool is_frozen, const std::stop_token& stop);
  ReplicaPart exchange(const ReplicaPart& mine, const std::stop_token& stop);
  void swap(ConstMemory out, Memory in, const std::stop_token& stop);
  void swap_files(const ReplicaPart& mine, uint64_t bytes, const ReplicaPart& theirs,
                  uint64_t their_bytes, const std::stop_token& stop);

  [[nodiscard]] int next() const { return (rank + places.ranks_per_host) % world_size; }
  [[nodiscard]] int former() const {
    return (rank + world_size - places.ranks_per_host) % world_size;
  }
};

NeighbourCopies::NeighbourCopies(Communicator& communicator, ReplicaPlaces places,
                                 std::vector<bool> files, double timeout, uint64_t kept)
    : communicator_(communicator),
      job_(std::make_shared<Job>(
          Job{.name = make_save_id(communicator),
              .places = std::move(places),
              .files = std::move(files),
              .timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
                  std::chrono::duration<double>(timeout)),
              .rank = communicator.rank(),
              .world_size = communicator.world_size(),
              .staged = {},
              .frozen = {},
              .leaving = {},
              .arriving = {}})),
      kept_(kept),
      task_("replicate into " + job_->places.directory, timeout) {
  // By now all ranks have read what they go on from; the next steps write files of the same names.
  if (leads_host()) job_->here.keep_only({kept_});
}

NeighbourCopies::~NeighbourCopies() {
  if (task_.in_flight() && job_->places.transport != nullptr)
    job_->places.transport->abort("the run has ended");
}

bool NeighbourCopies::leads_host() const { return job_->rank % job_->places.ranks_per_host == 0; }

uint64_t NeighbourCopies::bytes() const { return job_->staged.values.size(); }

void NeighbourCopies::start(const std::function<void(StagedState&)>& stage) {
  const uint64_t former = job_->staged.info.step;
  finish();
  stage(job_->staged);
  communicator_.barrier();  // all ranks have the former replica
  if (former != 0) kept_ = former;
  if (leads_host()) job_->here.keep_only({kept_, job_->staged.info.step});
  task_.start(job_->rank, [job = job_](const std::stop_token& stop) { job->copy(stop); });
}

void NeighbourCopies::finish() {
  task_.check();
  while (task_.in_flight()) task_.wait_a_moment();  // ends: with the task, or when it hangs
}

void NeighbourCopies::drop() {
  finish();
  communicator_.barrier();
  if (leads_host()) job_->here.keep_only({});
  communicator_.barrier();
  if (job_->rank == 0) job_->places.replicated(0);
  job_->staged.info.step = kept_ = 0;
  job_->frozen.clear();
}

void NeighbourCopies::Job::copy(const std::stop_token& stop) {
  const uint64_t step = staged.info.step;
  const bool has_frozen = !frozen.empty();
  for (const ReplicaPart& part : frozen) here.link(part, step);
  for (ReplicaPart& part : frozen) part.step = step;
  for (const bool is_frozen : files) {
    if (is_frozen && has_frozen) continue;
    const auto mine = write(is_frozen, stop);
    if (!mine) return;
    if (is_frozen) frozen.push_back(*mine);
    if (places.transport == nullptr) continue;
    const ReplicaPart theirs = exchange(*mine, stop);
    if (is_frozen) frozen.push_back(theirs);
  }
  if (rank == 0) places.replicated(int64_t(step));
}

std::optional<ReplicaPart> NeighbourCopies::Job::write(bool is_frozen,
                                                       const std::stop_token& stop) {
  const WriterRank writing{staged.info.step, rank, world_size, is_frozen};
  CheckpointWriter writer(here.directory(), writing);
  if (!write_staged(staged, is_frozen, stop, writer)) return std::nullopt;
  Manifest described;
  described.info = staged.info;
  const ReplicaPart part{.job = name,
                         .step = staged.info.step,
                         .rank = rank,
                         .world_size = world_size,
                         .frozen = is_frozen,
                         .files_of_a_rank = int(files.size()),
                         .content = to_json(writer.finish()),
                         .info = to_json(described)};
  here.add(part);
  return part;
}

void NeighbourCopies::Job::swap(ConstMemory out, Memory in, const std::stop_token& stop) {
  // The transport may be gone with the run.
  if (stop.stop_requested()) fail(ErrorKind::kPeer, "replicate: the run has ended");
  constexpr Tag kTag = 0;  // messages of a pair arrive in order
  Transport& transport = *places.transport;
  const Deadline deadline = Deadline::after(timeout);
  const Ticket leaves = transport.send(next(), kTag, out);
  const Ticket arrives = transport.recv(former(), kTag, in);
  transport.wait(leaves, deadline);
  transport.wait(arrives, deadline);
}

ReplicaPart NeighbourCopies::Job::exchange(const ReplicaPart& mine, const std::stop_token& stop) {
  const std::string text = pack_fact(mine);
  const uint64_t bytes = parse_file_part(mine.content).file.bytes;
  const std::array<uint64_t, 2> sizes{text.size(), bytes};
  std::array<uint64_t, 2> their_sizes{};
  swap(memory_of(sizes), memory_of(their_sizes), stop);
  if (their_sizes[0] > kMaxPartTextBytes)
    fail(ErrorKind::kPeer, "replicate step {}: rank {} announces {} B of text", mine.step, former(),
         their_sizes[0]);
  std::string their_text(their_sizes[0], '\0');
  swap(memory_of(std::as_const(text)), memory_of(their_text), stop);
  const auto theirs = unpack_fact<ReplicaPart>(their_text);
  if (theirs.job != name || theirs.step != mine.step || theirs.rank != former())
    fail(ErrorKind::kPeer, "replicate step {}: rank {} has sent step {} of rank {}", mine.step,
         former(), theirs.step, theirs.rank);
  swap_files(mine, bytes, theirs, their_sizes[1], stop);
  here.add(theirs);
  return theirs;
}

void NeighbourCopies::Job::swap_files(const ReplicaPart& mine, uint64_t bytes,
                                      const ReplicaPart& theirs, uint64_t their_bytes,
                                      const std::stop_token& stop) {
  const OwnDirectory directory = OwnDirectory::enter(here.path(mine.step));
  const InputFile own(here.path(mine.step) + "/" + data_file_of(mine));
  const auto file = directory.create(data_file_of(theirs));
  uint64_t left = bytes, their_left = their_bytes;
  while (left > 0 || their_left > 0) {
    leaving.resize(std::min<uint64_t>(left, kChunkBytes));
    arriving.resize(std::min<uint64_t>(their_left, kChunkBytes));
    own.read(bytes - left, memory_of(leaving));
    swap(memory_of(std::as_const(leaving)), memory_of(arriving), stop);
    file->write(memory_of(std::as_const(arriving)));
    left -= leaving.size();
    their_left -= arriving.size();
  }
  if (file->close() != parse_file_part(theirs.content).file.hash)
    fail(ErrorKind::kCorrupt, "replicate step {}: what rank {} has sent has another hash",
         mine.step, theirs.rank);
}

}  // namespace gxp
