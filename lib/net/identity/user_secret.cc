#include "lib/net/identity/user_secret.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"

namespace gxp {
namespace {

std::string home_of(uid_t user) {
  std::vector<char> buffer(size_t{16} << 10);
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found);
  return error == 0 && found != nullptr && found->pw_dir != nullptr ? found->pw_dir : "";
}

bool is_absolute(const std::string* path) { return path != nullptr && path->starts_with('/'); }

// An error about the file, with the way around it.
[[noreturn]] void fail_to_make(const std::string& path, const std::string& cause) {
  fail(ErrorKind::kIo,
       "create this user's job secret {}: {}; or set {} to a file of 64 hexadecimal digits that "
       "all hosts have",
       path, cause, kSecretFileVariable);
}

void check_made(long result, const std::string& path) {
  if (result < 0) fail_to_make(path, system_text(errno));
}

// The parents of `path`, those that are missing for this user alone.
void make_directories(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string directory = path.substr(0, at);
    if (::mkdir(directory.c_str(), 0700) == 0) continue;
    const int cause = errno;  // may be any where it exists already
    std::error_code ignored;
    if (std::filesystem::is_directory(directory, ignored)) continue;
    fail_to_make(path, cause == EEXIST ? directory + " is not a directory" : system_text(cause));
  }
}

// Gives the complete file `made` its name, unless there is one: whose comes second takes that one.
// Some file systems have no hard links.
bool publish(const std::string& made, const std::string& path) {
  if (::link(made.c_str(), path.c_str()) == 0) return true;
  if (errno == EEXIST) return false;
  const std::string cause = system_text(errno);
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0)
    return true;
  if (errno != EEXIST) fail_to_make(path, cause);
  return false;
}

// Removed again, whatever happens.
struct TemporaryFile {
  std::string path;
  ~TemporaryFile() { ::unlink(path.c_str()); }
};

void make_secret_file(const std::string& path) {
  make_directories(path);
  TemporaryFile made{path + ".XXXXXX"};
  const Fd file(::mkostemp(made.path.data(), O_CLOEXEC));  // mode 600, whatever the umask
  check_made(file.get(), path);
  const std::string text = Secret::generate().hex() + "\n";
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  check_made(written, path);
  if (size_t(written) < text.size()) fail_to_make(path, "the disk is full");
  check_made(::fsync(file.get()), path);
  if (publish(made.path, path))
    log_info("created {}, the secret by which this user's ranks authenticate each other", path);
}

}  // namespace

std::string user_secret_path(const Environment& environment) {
  const std::string* config = find_variable(environment, "XDG_CONFIG_HOME");
  if (is_absolute(config)) return *config + "/gxp/job.secret";
  const std::string* home = find_variable(environment, "HOME");
  const std::string base = is_absolute(home) ? *home : home_of(::geteuid());
  if (!is_absolute(&base))
    fail(ErrorKind::kConfig,
         "find the job secret: user {} has no home to keep one in; set HOME, or {} to a file of 64 "
         "hexadecimal digits that all hosts have",
         ::geteuid(), kSecretFileVariable);
  return base + "/.config/gxp/job.secret";
}

Secret user_secret(const Environment& environment) {
  const std::string path = user_secret_path(environment);
  if (::access(path.c_str(), F_OK) != 0) make_secret_file(path);
  return Secret::from_users_file(path);
}

Secret given_or_user_secret(const Environment& environment) {
  if (auto given = find_secret(environment)) return *given;
  return user_secret(environment);
}

}  // namespace gxp
