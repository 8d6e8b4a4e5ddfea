#include "lib/ckpt/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace fs = std::filesystem;

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

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  ::unlink(path_.c_str());
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  fd_ = Fd(int(check_sys(::open(path_.c_str(), flags, 0666), fmt::format("create {}", path_))));
}

OutputFile::~OutputFile() {
  if (fd_.valid()) ::unlink(path_.c_str());
}

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
}

void OutputFile::write(std::string_view text) { write(memory_of(std::as_const(text))); }

std::string OutputFile::close() {
  const std::string act = fmt::format("write {} bytes to {}", bytes_, path_);
  check_sys(::fsync(fd_.get()), act);
  // Network file systems report a full disk no earlier than here.
  if (::close(fd_.release()) < 0) {
    const int cause = errno;
    ::unlink(path_.c_str());
    fail(ErrorKind::kIo, "{}: {}", act, system_text(cause));
  }
  return hasher_.hex();
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

void create_directory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail(ErrorKind::kIo, "create directory {}: {}", path, error.message());
}

void sync_directory(const std::string& directory) {
  const std::string act = fmt::format("sync directory {}", directory);
  const Fd fd(int(check_sys(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), act)));
  check_sys(::fsync(fd.get()), act);
}

void replace_path(const std::string& from, const std::string& to) {
  const std::string act = fmt::format("rename {} to {}", from, to);
  std::error_code error;
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(from, error);  // now the old one
  } else {
    // Nothing to exchange with; or no exchange here, as on NFS: there `to` has to go first.
    if (errno == EINVAL || errno == ENOSYS) fs::remove_all(to, error);
    check_sys(::rename(from.c_str(), to.c_str()), act);
  }
  const std::string parent = fs::path(to).parent_path().string();
  sync_directory(parent.empty() ? "." : parent);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

}  // namespace gxp
