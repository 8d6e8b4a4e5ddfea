#include "lib/topo/read/system_root.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

constexpr size_t kEntryBytes = 128;  // of a look at an entry
constexpr size_t kSortLooks = 8;     // at a name when a directory's are sorted

// The names between the slashes, the last first.
std::vector<std::string> reversed_names(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    const size_t slash = path.rfind('/');
    const std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
    if (!name.empty() && name != ".") names.emplace_back(name);
    path = slash == path.npos ? "" : path.substr(0, slash);
  }
  return names;
}

std::string parent_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == path.npos ? "" : path.substr(0, slash));
}

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

// "cpu2" before "cpu10".
bool comes_before(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (!is_decimal(a[0]) || !is_decimal(b[0])) {
      if (a[0] != b[0]) return a[0] < b[0];
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const auto digits = [](std::string_view text) {
      return text.substr(0, size_t(std::ranges::find_if_not(text, is_decimal) - text.begin()));
    };
    const std::string_view x = digits(a), y = digits(b);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
    a.remove_prefix(x.size());
    b.remove_prefix(y.size());
  }
  return a.size() < b.size();
}

// Git and archives without symbolic links write a link as a file with what it leads to.
bool is_target(std::string_view text) {
  return text.starts_with("../") && text.find_first_of(" \t\r\n") == text.npos;
}

class DirectoryRoot : public SystemRoot {
 public:
  explicit DirectoryRoot(std::string directory) : directory_(std::move(directory)) {}
  [[nodiscard]] bool live() const override { return directory_.empty(); }

 protected:
  [[nodiscard]] Entry look_at(const std::string& path) const override {
    const std::string full = directory_ + path;
    struct stat status {};
    if (::lstat(full.c_str(), &status) != 0) return {};
    if (S_ISDIR(status.st_mode)) return {Kind::kDirectory};
    if (S_ISREG(status.st_mode) && !live() && status.st_size < PATH_MAX) {
      if (const auto text = content_of(path); text && is_target(*text)) return {Kind::kLink, *text};
    }
    if (!S_ISLNK(status.st_mode)) return {Kind::kFile};
    std::array<char, PATH_MAX> target;
    const ssize_t size = ::readlink(full.c_str(), target.data(), target.size());
    if (size <= 0) return {};
    return {Kind::kLink, std::string(target.data(), size_t(size))};
  }

  [[nodiscard]] std::optional<std::string> content_of(const std::string& path) const override {
    // O_NONBLOCK: a pipe or device in a recorded directory must not stop the reader.
    const Fd fd(
        ::open((directory_ + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    struct stat status {};
    if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode))
      return std::nullopt;
    std::string content;
    std::array<char, 1 << 14> piece;
    while (content.size() < kMaxFileBytes) {
      const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
      if (got < 0) return std::nullopt;  // sysfs answers so where a device has no such value
      if (got == 0) break;
      content.append(piece.data(), size_t(got));
    }
    return content;
  }

  [[nodiscard]] std::vector<std::string> names_in(const std::string& path) const override {
    std::vector<std::string> names;
    DIR* const directory = ::opendir((directory_ + path + "/").c_str());
    if (directory == nullptr) return names;
    while (const dirent* const entry = ::readdir(directory)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(directory);
    return names;
  }

 private:
  std::string directory_;
};

}  // namespace

void SystemRoot::spend(size_t bytes) const {
  const std::atomic_ref spent(spent_bytes_);
  if (live() || spent.fetch_add(bytes + kEntryBytes) <= kMaxWorkBytes) return;
  fail(ErrorKind::kCorrupt,
       "read recorded /proc and /sys: following its links takes more than {} of names and content; "
       "was it written by hwloc-gather-topology?",
       format_bytes(kMaxWorkBytes));
}

std::optional<std::string> SystemRoot::resolve(std::string_view path) const {
  std::vector<std::string> ahead = reversed_names(path);
  std::string done;
  for (int links = 0; !ahead.empty();) {
    const std::string name = std::move(ahead.back());
    ahead.pop_back();
    if (name == "..") {
      done = parent_of(done);
      continue;
    }
    spend(done.size());
    const Entry entry = look_at(done + "/" + name);
    if (entry.kind == Kind::kNothing || (entry.kind == Kind::kFile && !ahead.empty()))
      return std::nullopt;
    if (entry.kind != Kind::kLink) {
      done += "/" + name;
      continue;
    }
    if (++links > kMaxLinks) return std::nullopt;
    if (entry.target.starts_with('/')) done.clear();
    for (std::string& part : reversed_names(entry.target)) ahead.insert(ahead.end(), part);
    // reversed_names() has the last name first, as `ahead` has.
  }
  return done.empty() ? "/" : done;
}

std::optional<std::string> SystemRoot::read_bytes(std::string_view path) const {
  const auto resolved = resolve(path);
  if (!resolved || look_at(*resolved).kind != Kind::kFile) return std::nullopt;
  auto content = content_of(*resolved);
  if (content) spend(content->size());
  return content;
}

std::optional<std::string> SystemRoot::read(std::string_view path) const {
  auto content = read_bytes(path);
  // Linux 5.15 and near have a NUL behind the CPU maps of NUMA nodes.
  constexpr std::string_view kFillers("\0 \t\r\n", 5);
  if (content) content->resize(content->find_last_not_of(kFillers) + 1);
  return content;
}

std::optional<long> SystemRoot::read_number(std::string_view path) const {
  const auto text = read(path);
  if (!text) return std::nullopt;
  std::string_view digits = *text;
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  const bool hexadecimal = digits.starts_with("0x");
  if (hexadecimal) digits.remove_prefix(2);
  return whole_number<long>(digits, hexadecimal ? 16 : 10);
}

std::vector<std::string> SystemRoot::list(std::string_view path) const {
  const auto resolved = resolve(path);
  if (!resolved || (*resolved != "/" && look_at(*resolved).kind != Kind::kDirectory)) return {};
  std::vector<std::string> names = names_in(*resolved == "/" ? "" : *resolved);
  for (const std::string& name : names) spend(kSortLooks * name.size());
  std::ranges::sort(names, comes_before);
  return names;
}

std::string SystemRoot::link_name(std::string_view path) const {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return "";
  const auto above = resolve(path.substr(0, slash));
  if (!above) return "";
  const Entry entry = look_at(*above + std::string(path.substr(slash)));
  if (entry.kind != Kind::kLink) return "";
  const std::vector<std::string> names = reversed_names(entry.target);
  return names.empty() ? "" : names[0];
}

namespace {

// Linux has a link to each device; copies by "cp -rL", by Windows or without /sys/devices have not.
void check_links(const SystemRoot& root, const std::string& path) {
  const std::string devices = "/sys/bus/pci/devices";
  const std::vector<std::string> ids = root.list(devices);
  const auto is_link = [&](const std::string& id) {
    return root.resolve(devices + "/" + id).value_or("").starts_with("/sys/devices/");
  };
  const auto lost = std::ranges::find_if_not(ids, is_link);
  if (lost == ids.end()) return;
  fail(ErrorKind::kIo,
       "read recorded root {}: {}/{} is not a link to a device below /sys/devices, so the copy is "
       "not faithful; record it with hwloc-gather-topology, or copy links as links (tar, cp -a)",
       path, devices, *lost);
}

}  // namespace

std::unique_ptr<SystemRoot> live_root() { return std::make_unique<DirectoryRoot>(""); }

std::unique_ptr<SystemRoot> open_recorded_directory(const std::string& path) {
  struct stat status {};
  check_sys(::stat(path.c_str(), &status), "read recorded root " + path);
  if (!S_ISDIR(status.st_mode))
    fail(ErrorKind::kIo,
         "read recorded root {}: it is a file; unpack what hwloc-gather-topology wrote, and give "
         "the folder",
         path);
  std::string directory = path;
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  auto root = std::make_unique<DirectoryRoot>(directory);
  if (root->exists("/sys")) {
    check_links(*root, path);
    return root;
  }
  for (const std::string& name : root->list("/")) {
    auto inner = std::make_unique<DirectoryRoot>(directory + "/" + name);
    if (!inner->exists("/sys")) continue;
    check_links(*inner, path);
    return inner;
  }
  fail(ErrorKind::kIo,
       "read recorded root {}: it has no sys directory at the top or one level below; was it "
       "recorded by hwloc-gather-topology?",
       path);
}

}  // namespace gxp
