#include "lib/train/metrics.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/base/text_file.h"

namespace gxp {
namespace {

// Of a whole line of metrics; nothing of anything else, as of a line that a full disk has cut.
std::optional<int64_t> step_of(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer())
    return std::nullopt;
  return json["step"].get<int64_t>();
}

// The bytes up to the end of the last line of a step up to `last_step`; lines of later steps, which
// will be made again, end the search.
off_t kept_bytes(const std::string& path, int64_t last_step) {
  std::ifstream file(path, std::ios::binary);
  off_t kept = 0, read = 0;
  for (std::string line; last_step > 0 && std::getline(file, line) && !file.eof();) {
    read += off_t(line.size()) + 1;
    const std::optional<int64_t> step = step_of(line);
    if (step > last_step) break;
    if (step) kept = read;
  }
  return kept;
}

nlohmann::ordered_json or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace

std::string to_json_line(const StepMetrics& metrics) {
  const StepResult& r = metrics.result;
  nlohmann::ordered_json json = {{"step", r.step},
                                 {"loss", r.loss},
                                 {"grad_norm", r.grad_norm},
                                 {"lr", r.lr},
                                 {"tokens", r.tokens},
                                 {"targets", r.targets},
                                 {"tokens_per_s", double(r.tokens) / r.seconds},
                                 {"mfu", or_null(metrics.mfu)},
                                 {"peak_flops", or_null(metrics.peak_flops)},
                                 {"step_ms", r.seconds * 1e3},
                                 {"comm_ms", r.comm_seconds * 1e3},
                                 {"update_ms", r.update_seconds * 1e3},
                                 {"wire_bytes", r.wire_bytes},
                                 {"wire_bytes_between_hosts", r.wire_bytes_between_hosts},
                                 {"peak_bytes", metrics.peak.total()}};
  json["time"] = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
  for (size_t kind = 0; kind < kMemoryKindCount; ++kind)
    json["peak_bytes_by_kind"][std::string(kMemoryKindNames[kind])] = metrics.peak.by_kind[kind];
  if (r.offload_bytes > 0) {
    json["host_bytes"] = metrics.host_bytes;
    json["file_bytes"] = metrics.file_bytes;
    json["offload_bytes"] = r.offload_bytes;
    json["offload_ms"] = r.offload_seconds * 1e3;
  }
  if (metrics.driver_bytes > 0) json["driver_bytes"] = metrics.driver_bytes;
  if (metrics.skipped_steps) {
    json["loss_scale"] = r.loss_scale;
    json["skipped_steps"] = *metrics.skipped_steps;
  }
  if (metrics.epochs.size() == 1)
    json["epoch"] = metrics.epochs[0];
  else if (!metrics.epochs.empty())
    json["epochs"] = metrics.epochs;
  if (metrics.valid_loss) json["valid_loss"] = *metrics.valid_loss;
  return json.dump();
}

MetricsFile::MetricsFile(const std::string& path, int64_t last_step, bool is_runs_own)
    : path_(path), is_runs_own_(is_runs_own) {
  const std::string act = fmt::format("write metrics to {}", path);
  // A pipe that nobody reads would be waited for.
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
  const int fd = ::open(path.c_str(), is_runs_own ? flags | O_NOFOLLOW : flags, 0666);
  if (fd < 0 && errno == ENXIO) fail(ErrorKind::kIo, "{}: it is a pipe that nobody reads", act);
  if (fd < 0 && errno == ELOOP && is_runs_own)
    fail(ErrorKind::kIo, "{}: it is a link; remove it, or set another train.run_dir", act);
  file_ = Fd(int(check_sys(fd, act)));
  struct stat status = {};
  check_sys(::fstat(file_.get(), &status), act);
  if (!S_ISREG(status.st_mode)) {
    if (is_runs_own) fail(ErrorKind::kIo, "{}: not a regular file", act);
    check_sys(::fcntl(file_.get(), F_SETFL, O_WRONLY | O_APPEND), act);
    return;  // a device may have no end
  }
  check_sys(::ftruncate(file_.get(), kept_bytes(path, last_step)), act);
}

void MetricsFile::write(const StepMetrics& metrics) {
  struct stat status = {};
  if (is_runs_own_ && ::fstat(file_.get(), &status) == 0 && status.st_nlink == 0)
    fail(ErrorKind::kIo, "write metrics to {}: the file was removed", path_);
  write_fully(file_.get(), to_json_line(metrics) + '\n', fmt::format("write metrics to {}", path_));
}

}  // namespace gxp
