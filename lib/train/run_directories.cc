#include "lib/train/run_directories.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/format.h"
#include "lib/ckpt/native/checkpoint.h"
#include "lib/ckpt/native/writer.h"
#include "lib/config/load.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

// With this every line of metrics begins; see metrics.h.
constexpr std::string_view kLineStart = R"({"step":)";

// Whether the file holds lines that a run has written. Pipes and devices keep none.
bool holds_metrics(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  std::array<char, kLineStart.size()> bytes{};
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  const std::string_view start(bytes.data(), size_t(file.gcount()));
  if (start.empty()) return false;
  const int digit = file.peek();  // of a whole start; a full disk may have cut it
  if (!kLineStart.starts_with(start) || (digit != EOF && (digit < '0' || digit > '9')))
    fail(ErrorKind::kConfig,
         "write metrics to {}: it does not hold metrics; name another file, or remove it", path);
  return true;
}

std::string describe_steps(const std::vector<uint64_t>& steps) {
  if (steps.size() == 1) return step_name(steps[0]);
  return fmt::format("{} checkpoints up to {}", steps.size(), step_name(steps.back()));
}

// What `dir`, which has no checkpoint of ours, holds instead.
std::string describe_content(const std::string& dir) {
  for (const CheckpointFormat& format : kFormats) {
    if (format.recognises(dir))
      return fmt::format(
          "it holds one of format {}; convert that first (gxp convert-ckpt {} DIR --to "
          "gxp)",
          format.name, dir);
  }
  return "start without --resume, or name the directory of one";
}

void check_resumable(const std::string& dir, EarlierRun request) {
  if (request != EarlierRun::kContinue || !complete_steps(dir).empty()) return;
  fail(ErrorKind::kIo, "resume from {}: no checkpoint of gxp train there; {}", dir,
       describe_content(dir));
}

// Two runs would cut each other's metrics.
void check_owner(const RunDirectories& directories) {
  const std::string path = directories.records + "/resolved.toml";
  std::error_code error;
  if (directories.checkpoints.empty() || directories.records.empty() ||
      fs::weakly_canonical(directories.records, error) ==
          fs::weakly_canonical(directories.checkpoints, error) ||
      !fs::is_regular_file(path, error))
    return;
  std::string other;
  try {
    other = load_config(path).run.checkpoint.dir;
  } catch (const Error&) {
    return;  // of another version, or no settings at all
  }
  if (other.empty() ||
      fs::weakly_canonical(other, error) == fs::weakly_canonical(directories.checkpoints, error))
    return;
  fail(ErrorKind::kConfig,
       "write into directory {}: it holds the metrics and settings of the run whose checkpoints "
       "are in {}; give this run another train.run_dir",
       directories.records, other);
}

void check_earlier_run(const RunDirectories& directories, EarlierRun request) {
  check_resumable(directories.checkpoints, request);
  check_owner(directories);
  std::vector<std::string> found, remedies = {"replace it with --overwrite"};
  const auto steps = directories.checkpoints.empty() ? std::vector<uint64_t>{}
                                                     : complete_steps(directories.checkpoints);
  if (!steps.empty()) {
    found.push_back(fmt::format("{} in {}", describe_steps(steps), directories.checkpoints));
    remedies.insert(remedies.begin(), "continue it with --resume");
  }
  for (const std::string& path : directories.metrics)
    if (holds_metrics(path)) found.push_back(path);
  if (request != EarlierRun::kRefuse || found.empty()) return;
  fail(ErrorKind::kConfig, "start at step 1: an earlier run left {}; {}, or set other directories",
       joined(found, " and "), joined(remedies, ", "));
}

}  // namespace

void prepare_directory(const std::string& path) {
  create_directory(path);
  if (::access(path.c_str(), W_OK) != 0)
    fail(ErrorKind::kIo, "write into directory {}: {}", path, system_text(errno));
}

RunDirectories directories_of(const RunConfig& config, const std::string& metrics_path) {
  const bool own = !config.train.run_dir.empty();
  RunDirectories directories{config.checkpoint.dir,
                             own ? config.train.run_dir : config.checkpoint.dir};
  if (!directories.records.empty())
    directories.metrics.push_back(directories.records + "/metrics.jsonl");
  if (!metrics_path.empty()) directories.metrics.push_back(metrics_path);
  return directories;
}

std::vector<DirectoryLock> claim_directories(const RunDirectories& directories,
                                             EarlierRun request) {
  // Before anything is written. But a directory that has a lock may be that of a run that has saved
  // nothing yet, and who holds it tells more than that nothing can be resumed.
  std::error_code error;
  if (request != EarlierRun::kContinue ||
      !fs::exists(fs::path(directories.checkpoints) / kLockName, error))
    check_earlier_run(directories, request);
  std::vector<DirectoryLock> locks;
  std::string locked;
  for (const std::string& directory : {directories.checkpoints, directories.records}) {
    if (directory.empty()) continue;
    prepare_directory(directory);
    if (!locked.empty() && fs::equivalent(directory, locked)) continue;
    locks.emplace_back(directory);
    locked = directory;
  }
  check_earlier_run(directories, request);  // what a run that has just ended may have left
  return locks;
}

void remove_checkpoints(const std::string& dir) {
  for (const uint64_t step : complete_steps(dir)) {
    const std::string left = remove_checkpoint(dir, step);
    if (!left.empty())
      fail(ErrorKind::kIo, "remove checkpoint {}/{}: {}", dir, step_name(step), left);
  }
}

}  // namespace gxp
