#include "lib/ckpt/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

void rename_path(const std::string& from, const std::string& to) {
  check_sys(std::rename(from.c_str(), to.c_str()), fmt::format("rename {} to {}", from, to));
}

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  const std::string act = fmt::format("open {}", path_);
  fd_ = Fd(int(check_sys(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), act)));
  struct stat status = {};
  check_sys(::fstat(fd_.get(), &status), act);
  if (!S_ISREG(status.st_mode)) fail(ErrorKind::kIo, "{}: not a regular file", act);
  bytes_ = uint64_t(status.st_size);
}

void InputFile::read(uint64_t offset, Memory out) const {
  GXP_ASSERT(out.space == MemorySpace::kHost);
  for (size_t done = 0; done < out.bytes;) {
    const ssize_t got = ::pread(fd_.get(), out.data + done, out.bytes - done, off_t(offset + done));
    if (got < 0 && errno == EINTR) continue;
    check_sys(got, fmt::format("read {} bytes at {} of {}", out.bytes, offset, path_));
    if (got == 0)
      fail(ErrorKind::kCorrupt, "read {} bytes at {} of {}: the file ends at {}", out.bytes, offset,
           path_, offset + done);
    done += size_t(got);
  }
}

OutputFile::OutputFile(std::string path, int directory)
    : path_(std::move(path)),
      directory_(directory < 0 ? AT_FDCWD : directory),
      name_(directory < 0 ? path_ : fs::path(path_).filename().string()) {
  remove();
  const std::string act = fmt::format("create {}", path_);
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  fd_ = Fd(int(check_sys(::openat(directory_, name_.c_str(), flags, 0666), act)));
  struct stat status = {};
  check_sys(::fstat(fd_.get(), &status), act);
  owner_ = status.st_uid;
}

OutputFile::~OutputFile() {
  if (fd_.valid()) remove();
}

void OutputFile::remove() const noexcept { ::unlinkat(directory_, name_.c_str(), 0); }

void OutputFile::write(ConstMemory data) {
  GXP_ASSERT(data.space == MemorySpace::kHost);
  for (size_t done = 0; done < data.bytes;) {
    const ssize_t put = ::write(fd_.get(), data.data + done, data.bytes - done);
    if (put < 0 && errno == EINTR) continue;
    check_sys(put, fmt::format("write {} bytes at {} of {}", data.bytes, bytes_, path_));
    done += size_t(put);
  }
  hasher_.update(std::span(data.data, data.bytes));
  bytes_ += data.bytes;
  start_writeback();
}

// So that the disk works while the file grows, and close() waits for little. A hint: file systems
// that do not take it write when they are asked to.
void OutputFile::start_writeback() {
  constexpr uint64_t kStep = uint64_t{8} << 20;
  if (bytes_ - submitted_ < kStep) return;
  (void)::sync_file_range(fd_.get(), off64_t(submitted_), off64_t(bytes_ - submitted_),
                          SYNC_FILE_RANGE_WRITE);
  submitted_ = bytes_;
}

void OutputFile::write(std::string_view text) { write(memory_of(std::as_const(text))); }

std::string OutputFile::close() {
  const std::string act = fmt::format("write {} bytes to {}", bytes_, path_);
  check_sys(::fsync(fd_.get()), act);
  // Network file systems report a full disk no earlier than here.
  if (::close(fd_.release()) < 0) {
    const int cause = errno;
    remove();
    fail(ErrorKind::kIo, "{}: {}", act, system_text(cause));
  }
  return hasher_.hex();
}

std::string hash_of(const InputFile& file) {
  constexpr uint64_t kBlockBytes = uint64_t{4} << 20;
  Hasher hasher;
  std::vector<std::byte> block;
  for (uint64_t begin = 0; begin < file.bytes(); begin += block.size()) {
    block.resize(std::min(kBlockBytes, file.bytes() - begin));
    file.read(begin, memory_of(block));
    hasher.update(block);
  }
  return hasher.hex();
}

std::string read_text(const std::string& path, uint64_t limit) {
  const InputFile file(path);
  if (file.bytes() > limit)
    fail(ErrorKind::kCorrupt, "read {}: {} bytes, more than the {} that such a file may have", path,
         file.bytes(), limit);
  std::string text(file.bytes(), '\0');
  file.read(0, memory_of(text));
  return text;
}

void write_text(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.close();
}

void copy_file(const std::string& from, const std::string& to) {
  constexpr uint64_t kCopiedBytes = 1 << 20;
  const InputFile source(from);
  OutputFile file(to);
  std::vector<std::byte> buffer;
  for (uint64_t done = 0; done < source.bytes(); done += buffer.size()) {
    buffer.resize(std::min(source.bytes() - done, kCopiedBytes));
    source.read(done, memory_of(buffer));
    file.write(memory_of(std::as_const(buffer)));
  }
  file.close();
}

bool path_exists(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  fail(ErrorKind::kIo, "stat {}: {}", path, system_text(errno));
}

bool is_real_directory(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

std::vector<std::string> list_names(int directory, const std::string& path) {
  const std::string act = fmt::format("list {}", path);
  // A descriptor of its own, as a listing moves the position and closes what it was given.
  Fd fd(int(check_sys(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), act)));
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(fd.get()), ::closedir);
  if (listing == nullptr) fail(ErrorKind::kIo, "{}: {}", act, system_text(errno));
  (void)fd.release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(listing.get());
    if (entry == nullptr) break;
    if (is_plain_name(entry->d_name)) names.emplace_back(entry->d_name);
  }
  if (errno != 0) fail(ErrorKind::kIo, "{}: {}", act, system_text(errno));
  std::ranges::sort(names);
  return names;
}

void create_directory(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return;
  const std::string name = path.empty() || path.back() != '/' ? path : parent_of(path);  // of "a/"
  const std::string parent = parent_of(name);
  if (!path_exists(parent)) create_directory(parent);
  // Another rank may be as quick.
  if (::mkdir(name.c_str(), 0777) < 0 && (errno != EEXIST || !fs::is_directory(name, error)))
    fail(ErrorKind::kIo, "create directory {}: {}", path,
         system_text(errno == EEXIST ? ENOTDIR : errno));
  // One that may be written and not read cannot be opened.
  if (::access(parent.c_str(), R_OK) == 0) sync_directory(parent);
}

void create_new_directory(const std::string& path) {
  check_sys(::mkdir(path.c_str(), 0777), fmt::format("create directory {}", path));
}

void sync_directory(const std::string& directory) {
  const std::string act = fmt::format("sync directory {}", directory);
  const Fd fd(int(check_sys(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), act)));
  check_sys(::fsync(fd.get()), act);
}

std::string replace_path(const std::string& from, const std::string& to) {
  std::string old;
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    old = from;
  } else {
    // Nothing to exchange with; or no exchange here, as on NFS, where a directory has to give way.
    const bool no_exchange = errno == EINVAL || errno == ENOSYS;
    if (!no_exchange && errno != ENOENT)
      fail(ErrorKind::kIo, "exchange {} and {}: {}", from, to, system_text(errno));
    const bool in_the_way = is_real_directory(to) || (is_real_directory(from) && path_exists(to));
    if (no_exchange && in_the_way) rename_path(to, old = aside_path(to));
    try {
      rename_path(from, to);
    } catch (...) {
      if (!old.empty()) (void)std::rename(old.c_str(), to.c_str());
      throw;
    }
  }
  sync_directory(parent_of(to));
  return old;
}

std::string aside_path(const std::string& path) {
  const fs::path whole(path);
  return whole.parent_path() / (".replaced-" + whole.filename().string());
}

bool take_back(const std::string& path) {
  const std::string aside = aside_path(path);
  if (path_exists(path) || !path_exists(aside)) return false;
  rename_path(aside, path);
  sync_directory(parent_of(path));
  return true;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

}  // namespace gxp
