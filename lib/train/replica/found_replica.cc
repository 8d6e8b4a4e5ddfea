#include "lib/train/replica/found_replica.h"

#include <algorithm>
#include <map>

#include "lib/base/log.h"
#include "lib/collective/communicator.h"
#include "lib/collective/gather_texts.h"
#include "lib/net/socket/frame.h"
#include "lib/net/store/facts.h"
#include "lib/train/replica/host_replicas.h"

namespace gxp {
namespace {

// A file of a replica, and ranks that have it.
struct HeldPart {
  ReplicaPart part;
  std::vector<int> ranks;
};

// The files of one replica, by rank and kind.
using HeldReplica = std::map<std::pair<int, bool>, HeldPart>;

// By step, the newest first, and by job.
using HeldReplicas = std::map<std::pair<uint64_t, std::string>, HeldReplica, std::greater<>>;

// [collective] The ranks of a host share the telling, and then the reading.
HeldReplicas gather_parts(const std::string& directory, int ranks_per_host, uint64_t saved,
                          Communicator& communicator) {
  std::vector<std::string> mine;
  int number = 0;
  for (ReplicaPart& part : HostReplicas(directory).parts()) {
    const bool is_mine = number++ % ranks_per_host == communicator.rank() % ranks_per_host;
    if (part.step > saved && is_mine) mine.push_back(pack_fact(std::move(part)));
  }
  HeldReplicas replicas;
  int rank = 0;
  for (const std::string& text : gather_texts(communicator, pack_strings(mine))) {
    for (const std::string& packed : unpack_strings(text)) {
      auto part = unpack_fact<ReplicaPart>(packed);
      HeldReplica& replica = replicas[{part.step, part.job}];
      HeldPart& held = replica[{part.rank, part.frozen}];
      held.part = std::move(part);
      held.ranks.push_back(rank);
    }
    ++rank;
  }
  return replicas;
}

bool is_whole(const HeldReplica& replica) {
  const ReplicaPart& first = replica.begin()->second.part;
  return replica.size() == size_t(first.world_size) * size_t(first.files_of_a_rank);
}

// The ranks whose parts nobody has.
std::string describe_holes(const HeldReplica& replica) {
  std::string ranks;
  const ReplicaPart& first = replica.begin()->second.part;
  for (int rank = 0; rank < first.world_size; ++rank)
    if (!replica.contains({rank, false}))
      ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  return ranks.empty() ? "some of what is not trained" : "the part of rank " + ranks;
}

// Each file is read by the one of its holders that reads least.
FoundReplica compose(const std::string& directory, const HeldReplica& replica, int world_size) {
  std::vector<FilePart> parts;
  std::vector<int> readers;
  std::vector<uint64_t> read(size_t(world_size), 0);
  for (const auto& [_, held] : replica) {
    parts.push_back(parse_file_part(held.part.content));
    readers.push_back(
        *std::ranges::min_element(held.ranks, {}, [&](int rank) { return read[size_t(rank)]; }));
    read[size_t(readers.back())] += parts.back().file.bytes;
  }
  const ReplicaPart& first = replica.begin()->second.part;
  const std::string path = HostReplicas(directory).path(first.step);
  Manifest manifest = parse_manifest(first.info, path);
  for (const FilePart& part : parts) manifest.files.push_back(part.file);
  manifest.tensors = merge_parts(parts);
  check_manifest(manifest, ErrorKind::kCorrupt, path);
  return {Checkpoint::of_parts(path, std::move(manifest)), std::move(readers)};
}

}  // namespace

std::optional<FoundReplica> find_replica(const std::string& directory, int ranks_per_host,
                                         uint64_t saved, Communicator& communicator) {
  const HeldReplicas replicas = gather_parts(directory, ranks_per_host, saved, communicator);
  for (const auto& [key, replica] : replicas) {
    if (is_whole(replica)) return compose(directory, replica, communicator.world_size());
    if (communicator.rank() == 0)
      log_warn("the replica of step {} is not whole: no host has {}", key.first,
               describe_holes(replica));
  }
  return std::nullopt;
}

}  // namespace gxp
