#include "lib/data/files/path_list.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "lib/base/error.h"

namespace gxp {
namespace {

// The paths that match, sorted by name.
std::vector<std::string> match(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

// Without hidden files, which patterns do not match either.
std::vector<std::string> files_in(const std::string& directory, const std::string& setting) {
  std::error_code error;
  std::vector<std::string> paths;
  for (auto entry = std::filesystem::directory_iterator(directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().filename().string().starts_with('.')) continue;
    if (entry->is_directory())
      fail(ErrorKind::kConfig,
           "{}: directory {} has the directory {}, whose files would be left out; name them by a "
           "pattern such as '{}/*/*.jsonl'",
           setting, directory, entry->path().filename().string(), directory);
    if (entry->is_regular_file()) paths.push_back(entry->path().string());
  }
  if (error) fail(ErrorKind::kIo, "list directory {}: {}", directory, error.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Of sorted paths.
std::vector<std::string> without_indices(std::vector<std::string> paths) {
  const std::vector<std::string> all = paths;
  std::erase_if(paths, [&](const std::string& path) {
    return path.ends_with(".idx") &&
           std::binary_search(all.begin(), all.end(), path.substr(0, path.size() - 4) + ".bin");
  });
  return paths;
}

}  // namespace

std::vector<std::string> expand_path(const std::string& path, const std::string& setting) {
  std::error_code ignored;  // what cannot be examined is reported where it is opened
  if (std::filesystem::is_directory(path, ignored)) {
    auto files = without_indices(files_in(path, setting));
    if (files.empty()) fail(ErrorKind::kConfig, "{}: directory {} has no files", setting, path);
    return files;
  }
  const bool is_pattern = path.find_first_of("*?[") != std::string::npos;
  if (!is_pattern || std::filesystem::exists(path, ignored)) return {path};
  auto matches = without_indices(match(path));
  if (matches.empty()) fail(ErrorKind::kConfig, "{}: no file matches '{}'", setting, path);
  return matches;
}

}  // namespace gxp
