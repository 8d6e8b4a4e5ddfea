#include "lib/ckpt/native/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>

#include "lib/base/log.h"
#include "lib/ckpt/native/step_directory.h"
#include "lib/ckpt/native/unchanged_file.h"

namespace gxp {
namespace {

// Files that an earlier attempt, perhaps of more ranks, has left.
void remove_others(const OwnDirectory& partial, const std::vector<DataFile>& files) {
  std::set<std::string> wanted;
  for (const DataFile& file : files) wanted.insert(file.name);
  for (const std::string& name : partial.names()) {
    if (!wanted.contains(name) && is_checkpoint_file(name))
      ::unlinkat(partial.fd().get(), name.c_str(), 0);
  }
}

// Each file is here with its size. Ranks on other hosts have written theirs to a directory of the
// same path, which is another one where hosts do not share it.
void check_presence(const OwnDirectory& partial, const std::vector<DataFile>& files) {
  for (const DataFile& file : files) {
    // Opened, not only looked at: then NFS asks its server.
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const Fd fd(::openat(partial.fd().get(), file.name.c_str(), flags));
    struct stat status = {};
    std::string fault;
    if (!fd.valid() || ::fstat(fd.get(), &status) < 0) {
      fault = system_text(errno);
    } else if (!S_ISREG(status.st_mode) || uint64_t(status.st_size) != file.bytes) {
      fault = fmt::format("{} bytes written, {} found", file.bytes, status.st_size);
    }
    if (!fault.empty())
      fail(ErrorKind::kIo,
           "publish checkpoint: {}/{} is different on rank 0's host from what its rank wrote: {}; "
           "checkpoint.dir must be one directory that all hosts share",
           partial.path(), file.name, fault);
  }
}

void write_manifest(const OwnDirectory& partial, const Manifest& manifest) {
  const auto file = partial.create(kManifestName);
  file->write(to_json(manifest));
  file->close();
}

// An earlier checkpoint of the step, moved aside, once there is the one that replaced it.
std::string remove_superseded(const std::string& dir, uint64_t step) {
  const std::string path = fmt::format("{}/{}", dir, step_name(step));
  return has_manifest(path) ? remove_own(aside_path(path), is_checkpoint_file) : "";
}

// Sees to it that the step's name and the one aside are free, or what replace_path() may move.
void make_way(const std::string& dir, uint64_t step) {
  const std::string path = fmt::format("{}/{}", dir, step_name(step));
  if (path_exists(path) && !is_real_directory(path))
    fail(ErrorKind::kIo,
         "publish checkpoint {}: a link or a file has that name; move it away, or name another "
         "directory",
         path);
  remove_superseded(dir, step);
}

void warn_of(const std::string& left) {
  if (!left.empty()) log_warn("remove an old checkpoint: {}", left);
}

void prune(const std::string& dir, uint64_t published, const Retention& retention) {
  remove_stale(dir);
  auto steps = complete_steps(dir);
  for (const uint64_t step : steps) warn_of(remove_superseded(dir, step));
  if (retention.newest == 0) return;
  std::erase(steps, published);
  const size_t others = std::min(steps.size(), size_t(retention.newest) - 1);
  steps.resize(steps.size() - others);
  const auto every = uint64_t(retention.multiples_of);
  if (every > 0) std::erase_if(steps, [=](uint64_t step) { return step % every == 0; });
  for (const uint64_t step : steps) warn_of(remove_checkpoint(dir, step));
}

}  // namespace

void remove_stale(const std::string& dir) {
  const Fd directory(int(check_sys(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                   fmt::format("list {}", dir))));
  for (const std::string& name : list_names(directory.get(), dir)) {
    if (is_partial_name(name)) remove_own(fmt::format("{}/{}", dir, name), is_checkpoint_file);
  }
}

// Removes the partial directory if `act` throws.
template <class Act>
auto CheckpointWriter::or_abandon(Act act) {
  try {
    return act();
  } catch (...) {
    file_.reset();
    remove_own(directory_.path(), is_checkpoint_file);
    throw;
  }
}

CheckpointWriter::CheckpointWriter(const std::string& dir, const WriterRank& rank) : dir_(dir) {
  part_.file.name = data_file_name(rank.rank, rank.world_size, rank.frozen);
  create_directory(dir);
  const std::string partial = partial_path(dir, rank.step);
  if (::mkdir(partial.c_str(), 0777) < 0 && errno != EEXIST)
    fail(ErrorKind::kIo, "create directory {}: {}", partial, system_text(errno));
  try {
    directory_ = OwnDirectory::enter(partial);
    file_ = directory_.create(part_.file.name);
  } catch (const Error& error) {
    blame_a_failed_rank(partial, error);
    ::rmdir(partial.c_str());  // if it is new
    throw;
  }
}

CheckpointWriter::~CheckpointWriter() {
  if (file_ == nullptr) return;  // finished or abandoned
  file_.reset();
  ::rmdir(directory_.path().c_str());  // if no other rank has a file in it
}

void CheckpointWriter::add(const TensorInfo& info, uint64_t begin, ConstMemory data) {
  GXP_ASSERT(file_ != nullptr && data.bytes % size_of(info.dtype) == 0);
  LogicalTensor& tensor = tensor_of(info);
  const uint64_t count = data.bytes / size_of(info.dtype);
  GXP_ASSERT(begin <= info.count() && count <= info.count() - begin);
  if (count == 0) return;
  const uint64_t offset = file_->bytes();
  or_abandon([&] { file_->write(data); });
  auto& pieces = tensor.pieces;
  if (!pieces.empty() && pieces.back().begin + pieces.back().count == begin) {
    pieces.back().count += count;
  } else {
    pieces.push_back({0, offset, begin, count});
  }
}

// The last tensor, if it is this one: its next elements follow in the file.
LogicalTensor& CheckpointWriter::tensor_of(const TensorInfo& info) {
  auto& tensors = part_.tensors;
  if (!tensors.empty() && tensors.back().info == info) return tensors.back();
  return tensors.emplace_back(LogicalTensor{info, {}});
}

FilePart CheckpointWriter::finish() {
  GXP_ASSERT(file_ != nullptr);
  part_.file.bytes = file_->bytes();
  part_.file.hash = or_abandon([&] { return file_->close(); });
  file_.reset();
  share_unchanged(directory_, part_.file, dir_);
  return std::move(part_);
}

std::string publish_checkpoint(const std::string& dir, std::span<const FilePart> parts,
                               const CheckpointInfo& info, const Retention& retention) {
  const std::string partial = partial_path(dir, info.step);
  std::string path = fmt::format("{}/{}", dir, step_name(info.step));
  Manifest manifest{info, GXP_VERSION, {}, merge_parts(parts)};
  for (const FilePart& part : parts) manifest.files.push_back(part.file);
  std::string replaced;
  try {
    check_manifest(manifest, ErrorKind::kInternal, "publish checkpoint " + path);
    const OwnDirectory directory = OwnDirectory::enter(partial);
    remove_others(directory, manifest.files);
    check_presence(directory, manifest.files);
    write_manifest(directory, manifest);
    directory.sync();
    make_way(dir, info.step);
    replaced = replace_path(partial, path);
  } catch (...) {
    remove_own(partial, is_checkpoint_file);
    throw;
  }
  try {
    if (!replaced.empty()) warn_of(remove_own(replaced, is_checkpoint_file));
    prune(dir, info.step, retention);
  } catch (const Error& error) {  // the new one is there
    log_warn("remove old checkpoints: {}", error.what());
  }
  return path;
}

std::string remove_checkpoint(const std::string& dir, uint64_t step) {
  const std::string path = step_path(dir, step);
  const std::string doomed = partial_path(dir, step);
  if (!is_real_directory(path)) return path + " is no directory";
  for (const std::string& other :
       {doomed, aside_path(fmt::format("{}/{}", dir, step_name(step)))}) {
    std::string left = other == path ? "" : remove_own(other, is_checkpoint_file);
    if (!left.empty()) return left;
  }
  if (std::rename(path.c_str(), doomed.c_str()) < 0)
    return fmt::format("rename {} to {}: {}", path, doomed, system_text(errno));
  return remove_own(doomed, is_checkpoint_file);
}

}  // namespace gxp
