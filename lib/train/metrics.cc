#include "lib/train/metrics.h"

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "lib/base/error.h"

namespace gxp {
namespace {

std::vector<std::string> lines_up_to(const std::string& path, int64_t last_step) {
  std::vector<std::string> lines;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return lines;  // a device may have no end
  std::ifstream file(path);
  for (std::string line; last_step > 0 && std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.value("step", int64_t{0}) <= last_step) lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string to_json_line(const StepMetrics& metrics) {
  const StepResult& r = metrics.result;
  nlohmann::ordered_json json = {{"step", r.step},
                                 {"loss", r.loss},
                                 {"grad_norm", r.grad_norm},
                                 {"lr", r.lr},
                                 {"tokens", r.tokens},
                                 {"tokens_per_s", double(r.tokens) / r.seconds},
                                 {"mfu", metrics.mfu},
                                 {"step_ms", r.seconds * 1e3},
                                 {"comm_ms", r.comm_seconds * 1e3},
                                 {"update_ms", r.update_seconds * 1e3},
                                 {"wire_bytes", r.wire_bytes},
                                 {"wire_bytes_between_hosts", r.wire_bytes_between_hosts},
                                 {"peak_bytes", metrics.peak.total()}};
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
  if (metrics.valid_loss) json["valid_loss"] = *metrics.valid_loss;
  return json.dump();
}

MetricsFile::MetricsFile(const std::string& path, int64_t last_step) : path_(path) {
  const std::vector<std::string> kept = lines_up_to(path, last_step);
  file_.open(path, std::ios::trunc);
  for (const std::string& line : kept) file_ << line << '\n';
  file_.flush();
  if (!file_) fail(ErrorKind::kIo, "write metrics to {}: {}", path, system_text(errno));
}

void MetricsFile::write(const StepMetrics& metrics) {
  file_ << to_json_line(metrics) << '\n' << std::flush;
  if (!file_) fail(ErrorKind::kIo, "write metrics to {}: {}", path_, system_text(errno));
}

}  // namespace gxp
