#include "lib/train/replica/host_replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lib/ckpt/native/part_files.h"
#include "lib/ckpt/native/step_directory.h"
#include "lib/net/store/facts.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

// Runs a call of the file system.
template <class Call>
void or_fail(const std::string& act, Call call) {
  std::error_code error;
  call(error);
  if (error) fail(ErrorKind::kIo, "{}: {}", act, error.message());
}

std::vector<std::string> step_directories(const std::string& directory) {
  std::vector<std::string> paths;
  or_fail("list " + directory, [&](std::error_code& error) {
    for (const auto& entry : fs::directory_iterator(directory, error))
      if (is_partial_name(entry.path().filename().string())) paths.push_back(entry.path());
  });
  std::ranges::sort(paths);
  return paths;
}

std::string text_file_of(const ReplicaPart& part) {
  return part_name({part.step, part.rank, part.world_size, part.frozen});
}

}  // namespace

std::string data_file_of(const ReplicaPart& part) {
  return data_file_name(part.rank, part.world_size, part.frozen);
}

std::vector<std::string> files_of(const ReplicaPart& part) {
  const std::string directory = fs::path(HostReplicas("").path(part.step)).filename();
  return {directory + "/" + data_file_of(part), directory + "/" + text_file_of(part)};
}

std::string HostReplicas::path(uint64_t step) const { return partial_path(directory_, step); }

void HostReplicas::add(const ReplicaPart& part) const {
  const std::string text = path(part.step) + "/" + text_file_of(part);
  write_text(text + ".new", pack_fact(part));
  or_fail("rename " + text + ".new",
          [&](std::error_code& error) { fs::rename(text + ".new", text, error); });
}

void HostReplicas::link(const ReplicaPart& part, uint64_t step) const {
  const std::string from = path(part.step) + "/" + data_file_of(part);
  const std::string to = path(step) + "/" + data_file_of(part);
  create_directory(path(step));
  std::error_code none;
  fs::remove(to, none);
  or_fail("link " + from + " to " + to,
          [&](std::error_code& error) { fs::create_hard_link(from, to, error); });
  ReplicaPart again = part;
  again.step = step;
  add(again);
}

std::vector<ReplicaPart> HostReplicas::parts() const {
  std::vector<ReplicaPart> found;
  for (const std::string& directory : step_directories(directory_)) {
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.path().extension() != ".json") continue;
      found.push_back(unpack_fact<ReplicaPart>(read_text(entry.path(), kMaxPartTextBytes)));
    }
  }
  return found;
}

void HostReplicas::keep_only(const std::vector<uint64_t>& steps) const {
  for (const std::string& directory : step_directories(directory_)) {
    const bool kept =
        std::ranges::any_of(steps, [&](uint64_t step) { return directory == path(step); });
    if (kept) continue;
    or_fail("remove " + directory,
            [&](std::error_code& error) { fs::remove_all(directory, error); });
  }
}

}  // namespace gxp
