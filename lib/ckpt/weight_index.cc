#include "lib/ckpt/weight_index.h"

#include <filesystem>
#include <map>
#include <set>

#include "lib/base/error.h"
#include "lib/base/json/json.h"
#include "lib/base/log.h"
#include "lib/base/text/plural.h"
#include "lib/ckpt/file.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxIndexBytes = 100'000'000;

// The file, in the index's folder, that each tensor is in.
using Index = std::map<std::string, std::string>;

Index read_index(const std::string& path) {
  const Json root = parse_json(read_text(path, kMaxIndexBytes), path);
  const std::string where = "read " + path;
  Index index;
  for (const auto& [tensor, file] :
       to_object(member(root, "weight_map", where), where + ": weight_map").items()) {
    const std::string name = to_text(file, where + ": weight_map");
    if (!is_plain_name(name))
      fail(ErrorKind::kCorrupt, "{}: '{}' is not the name of a file beside the index", where, name);
    index.emplace(tensor, name);
  }
  return index;
}

// `found` has the tensors that are where the index says, `elsewhere` a file of each that is not.
void check_index(const Index& index, const Index& found, const Index& elsewhere,
                 const std::string& path) {
  for (const auto& [tensor, file] : index) {
    if (found.contains(tensor)) continue;
    const auto real = elsewhere.find(tensor);
    fail(ErrorKind::kCorrupt, "read {}: weight_map puts tensor '{}' into {}, but it is in {}", path,
         tensor, file, real == elsewhere.end() ? "none of the files" : real->second);
  }
}

std::set<std::string> files_of(const Index& index, const std::string& path) {
  std::set<std::string> files;
  for (const auto& [tensor, file] : index)
    files.insert(std::filesystem::path(path).replace_filename(file));
  return files;
}

}  // namespace

std::set<std::string> indexed_files(const std::string& path) {
  return files_of(read_index(path), path);
}

void check_no_rival(const std::string& index, const std::string& single) {
  const std::string rival = std::filesystem::path(index).replace_filename(single);
  if (!path_exists(rival) || indexed_files(index).contains(rival)) return;
  fail(ErrorKind::kCorrupt,
       "read {}: it is beside {}, whose weights may be others; name the one of the two that is "
       "meant, or remove the other",
       index, single);
}

NamedTensors read_weight_index(const std::string& path,
                               const std::function<NamedTensors(const std::string&)>& read_file) {
  const Index index = read_index(path);
  NamedTensors result;
  Index found, elsewhere;
  for (const std::filesystem::path each : files_of(index, path)) {
    const std::string file = each.filename();
    NamedTensors part = read_file(each);
    result.metadata.merge(part.metadata);
    for (NamedTensor& tensor : part.tensors) {
      const std::string name = tensor.info.name;
      const auto told = index.find(name);
      if (told != index.end() && told->second != file) {
        elsewhere.emplace(name, file);
        continue;
      }
      if (!found.emplace(name, file).second)
        fail(ErrorKind::kCorrupt, "read {}: tensor '{}' is in two of the files", path, name);
      result.tensors.push_back(std::move(tensor));
    }
  }
  check_index(index, found, elsewhere, path);
  if (!elsewhere.empty())
    log_info("{}: not read, since weight_map names another file for them: {}, such as '{}' in {}",
             path, counted(elsewhere.size(), "tensor"), elsewhere.begin()->first,
             elsewhere.begin()->second);
  return result;
}

}  // namespace gxp
