// checkpoint_at(): of a folder of checkpoints, the newest.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <tuple>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/plural.h"
#include "lib/ckpt/format.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

// A directory in the folder: "checkpoint-500" is `begin` and `number`.
struct FolderEntry {
  std::string name;
  std::string begin = {};
  uint64_t number = 0;
  bool has_number = false;
  bool holds_checkpoint = false;
};

bool is_checkpoint(const std::string& path) {
  return std::ranges::any_of(kFormats, [&](const auto& format) { return format.recognises(path); });
}

FolderEntry to_entry(const fs::path& path) {
  FolderEntry entry{.name = path.filename()};
  entry.begin = entry.name.substr(0, entry.name.find_last_not_of("0123456789") + 1);
  const char* const end = entry.name.data() + entry.name.size();
  const auto parsed = std::from_chars(entry.name.data() + entry.begin.size(), end, entry.number);
  entry.has_number = parsed.ec == std::errc() && parsed.ptr == end;
  entry.holds_checkpoint = is_checkpoint(path);
  return entry;
}

// Its directories, by number; names without one come first.
std::vector<FolderEntry> entries_of(const std::string& path) {
  std::vector<FolderEntry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_directory(error)) entries.push_back(to_entry(entry->path()));
  }
  std::ranges::sort(entries, {}, [](const FolderEntry& entry) {
    return std::tuple(entry.has_number, entry.number, entry.name);
  });
  return entries;
}

[[noreturn]] void refuse_folder(const std::string& path, const std::vector<FolderEntry>& found) {
  constexpr size_t kNamed = 8;
  std::vector<std::string> names;
  for (size_t i = found.size() - std::min(found.size(), kNamed); i < found.size(); ++i)
    names.push_back(found[i].name);
  fail(ErrorKind::kCorrupt, "open {}: it is a folder of {}{} {}; name one, such as {}/{}", path,
       counted(found.size(), "checkpoint"), found.size() > kNamed ? ", the last of which are" : ":",
       joined(names, ", "), path, names.back());
}

// Whether their numbers alone tell which one is the newest.
bool are_numbered(const std::vector<FolderEntry>& found) {
  for (size_t i = 0; i < found.size(); ++i) {
    const bool is_like = found[i].has_number && found[i].begin == found[0].begin;
    if (!is_like || (i > 0 && found[i].number == found[i - 1].number)) return false;
  }
  return true;
}

}  // namespace

std::string checkpoint_at(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error) || is_checkpoint(path)) return path;
  const std::vector<FolderEntry> entries = entries_of(path);
  std::vector<FolderEntry> found;
  std::ranges::copy_if(entries, std::back_inserter(found), &FolderEntry::holds_checkpoint);
  if (found.empty()) return path;
  if (!are_numbered(found)) refuse_folder(path, found);
  const FolderEntry& newest = found.back();
  const FolderEntry& last = entries.back();
  if (last.has_number && last.begin == newest.begin && last.number > newest.number)
    log_warn("{}: {} is no checkpoint that gxp reads; an earlier one is read", path, last.name);
  log_info("{}: reading {}, {}", path, newest.name,
           found.size() == 1 ? "the only checkpoint"
                             : fmt::format("the newest of {} checkpoints", found.size()));
  return fmt::format("{}/{}", path, newest.name);
}

}  // namespace gxp
