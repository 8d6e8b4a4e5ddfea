#include "lib/ckpt/native/part_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdio>
#include <thread>

#include "lib/ckpt/native/step_directory.h"
#include "lib/ckpt/own_files.h"

namespace gxp {
namespace {

constexpr std::string_view kBegin = "part-";
constexpr std::string_view kFrozenBegin = "frozen-part-";
constexpr std::string_view kEnd = ".json";
constexpr std::string_view kEndWhileWritten = ".json.new";
constexpr uint64_t kMaxPartBytes = uint64_t{1} << 30;  // as a manifest
constexpr std::chrono::milliseconds kLookEvery{20};

// The text of the part of this save, or "" if it is not there yet.
std::string read_part(const std::string& path, const std::string& save_id) {
  if (!path_exists(path)) return "";
  const std::string text = read_text(path, kMaxPartBytes);
  const std::string head = save_id + "\n";
  return text.starts_with(head) ? text.substr(head.size()) : "";
}

}  // namespace

bool is_part_file(std::string_view name) {
  const std::string_view end = name.ends_with(kEnd) ? kEnd : kEndWhileWritten;
  return is_numbered_file(name, kBegin, end) || is_numbered_file(name, kFrozenBegin, end);
}

std::string part_name(const WriterRank& rank) {
  return fmt::format("{}{:05}-of-{:05}{}", rank.frozen ? kFrozenBegin : kBegin, rank.rank,
                     rank.world_size, kEnd);
}

void leave_part(const std::string& dir, const WriterRank& rank, const std::string& save_id,
                const FilePart& part) {
  const std::string path = partial_path(dir, rank.step);
  const std::string name = part_name(rank);
  const std::string while_written = name + ".new";
  std::string expected = path;  // only a rank that failed takes it away
  try {
    const OwnDirectory partial = OwnDirectory::enter(path);
    const auto file = partial.create(while_written);
    file->write(save_id + "\n" + to_json(part));
    file->close();
    expected = path + "/" + while_written;
    const int directory = partial.fd().get();
    check_sys(::renameat(directory, while_written.c_str(), directory, name.c_str()),
              fmt::format("rename {}/{}", path, while_written));
    expected = path + "/" + name;
    partial.sync();
  } catch (const Error& error) {
    blame_a_failed_rank(expected, error);
    throw;
  }
}

std::vector<FilePart> await_parts(const std::string& dir, const WriterRank& rank,
                                  const std::string& save_id, const std::stop_token& stop,
                                  Deadline deadline) {
  const std::string partial = partial_path(dir, rank.step);
  std::vector<FilePart> parts;
  WriterRank awaited = rank;
  while (parts.size() < size_t(rank.world_size)) {
    if (stop.stop_requested()) return {};
    awaited.rank = int(parts.size());
    const std::string path = fmt::format("{}/{}", partial, part_name(awaited));
    if (const std::string text = read_part(path, save_id); !text.empty()) {
      parts.push_back(parse_file_part(text));
      continue;
    }
    if (deadline.expired())
      fail(ErrorKind::kIo,
           "publish checkpoint: {}, by which rank {} reports that its file is complete, did not "
           "appear within {} s; checkpoint.dir must be one directory that all hosts share",
           path, parts.size(), deadline.seconds());
    std::this_thread::sleep_for(kLookEvery);
  }
  return parts;
}

}  // namespace gxp
