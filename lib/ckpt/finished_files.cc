#include "lib/ckpt/finished_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "lib/base/error.h"
#include "lib/ckpt/file.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 28;

std::string record_path(const std::string& directory) {
  return fmt::format("{}/{}", directory, kFinishedFiles);
}

// Who could foresee the name might have laid a directory there.
bool is_own_directory(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid();
}

// "" if there is none.
std::string read_record(const std::string& directory) {
  const std::string path = record_path(directory);
  return is_own_directory(directory) && path_exists(path) ? read_text(path, kMaxRecordBytes) : "";
}

// The files of the record. Its last line may be torn, and names no file then.
std::map<std::string, FinishedFiles::File> files_of(const std::string& record) {
  std::map<std::string, FinishedFiles::File> files;
  std::istringstream lines(record.substr(0, record.rfind('\n') + 1));
  std::string line;
  std::getline(lines, line);  // the conversion
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    FinishedFiles::File file;
    std::string name;
    if (words >> file.hash >> file.bytes >> name) files[name] = file;
  }
  return files;
}

}  // namespace

bool FinishedFiles::are_of(const std::string& conversion, const std::string& directory) {
  return read_record(directory).starts_with(conversion + "\n");
}

FinishedFiles FinishedFiles::enter(const std::string& directory, const WriteOptions& options) {
  FinishedFiles finished(directory);
  const std::string head = options.conversion + "\n";
  if (options.resume && are_of(options.conversion, directory))
    finished.earlier_ = files_of(read_record(directory));
  else
    create_new_directory(directory);
  const std::string path = record_path(directory);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
  finished.record_ = Fd(int(check_sys(::open(path.c_str(), flags, 0666), "create " + path)));
  finished.append(head);
  for (const auto& [name, file] : finished.earlier_) finished.add(name, file);
  return finished;
}

void FinishedFiles::append(const std::string& text) const {
  const ssize_t put = ::write(record_.get(), text.data(), text.size());
  check_sys(put, "write " + record_path(directory_));
}

void FinishedFiles::forget(const std::string& directory) {
  ::unlink(record_path(directory).c_str());
}

std::optional<FinishedFiles::File> FinishedFiles::find(const std::string& name) const {
  const auto found = earlier_.find(name);
  const std::string path = fmt::format("{}/{}", directory_, name);
  if (found == earlier_.end() || !path_exists(path)) return {};
  const InputFile file(path);
  const bool whole = file.bytes() == found->second.bytes && hash_of(file) == found->second.hash;
  return whole ? std::optional(found->second) : std::nullopt;
}

void FinishedFiles::add(const std::string& name, const File& file) {
  append(fmt::format("{} {} {}\n", file.hash, file.bytes, name));
}

}  // namespace gxp
