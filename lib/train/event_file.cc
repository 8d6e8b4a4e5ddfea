#include "lib/train/event_file.h"

#include <fcntl.h>
#include <isa-l/crc.h>

#include <bit>
#include <chrono>
#include <filesystem>
#include <protozero/pbf_writer.hpp>

#include "lib/base/error.h"
#include "lib/base/host_name.h"
#include "lib/base/text_file.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStart = "events.out.tfevents.";
constexpr std::string_view kEnd = ".gxp";

// Numbers of fields and values in the proto files.
namespace event {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace summary {
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2;
}
namespace session {
constexpr int kStatus = 1, kStatusStart = 1;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string little_endian(uint64_t number, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += char(number >> (8 * i) & 0xff);
  return text;
}

// CRC-32C, rotated and offset as TFRecords have it.
std::string masked_crc(std::string text) {
  const uint32_t crc =
      ~crc32_iscsi(reinterpret_cast<unsigned char*>(text.data()), int(text.size()), ~0u);
  return little_endian(std::rotr(crc, 15) + 0xa282ead8u, 4);
}

std::string record_of(const std::string& message) {
  const std::string length = little_endian(message.size(), 8);
  return length + masked_crc(length) + message + masked_crc(message);
}

// The beginning of an event of now.
protozero::pbf_writer start_event(std::string& message, int64_t step) {
  protozero::pbf_writer writer(message);
  writer.add_double(event::kWallTime, seconds_now());
  if (step != 0) writer.add_int64(event::kStep, step);
  return writer;
}

std::string version_record() {
  std::string message;
  start_event(message, 0).add_string(event::kFileVersion, "brain.Event:2");
  return record_of(message);
}

// Readers drop what they know of this step and later ones.
std::string restart_record(int64_t step) {
  std::string message, log;
  protozero::pbf_writer(log).add_enum(session::kStatus, session::kStatusStart);
  start_event(message, step).add_message(event::kSessionLog, log);
  return record_of(message);
}

void add_value(std::string& summary, std::string_view tag, double number) {
  std::string value;
  protozero::pbf_writer writer(value);
  writer.add_string(summary::kTag, tag.data(), tag.size());
  writer.add_float(summary::kSimpleValue, float(number));
  protozero::pbf_writer(summary).add_message(summary::kValue, value);
}

}  // namespace

EventFile::EventFile(const std::string& directory, int64_t steps_done)
    : path_(fmt::format("{}/{}{:010}.{}{}", directory, kStart, int64_t(seconds_now()), host_name(),
                        kEnd)) {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
  file_ = Fd(int(check_sys(::open(path_.c_str(), flags, 0666), "write events to " + path_)));
  append(version_record());
  if (steps_done > 0) go_back_to(steps_done);
}

void EventFile::write(const StepMetrics& metrics) {
  const StepResult& r = metrics.result;
  std::string summary;
  add_value(summary, "train/loss", r.loss);
  add_value(summary, "train/grad_norm", r.grad_norm);
  add_value(summary, "train/lr", r.lr);
  add_value(summary, "train/tokens_per_s", double(r.tokens) / r.seconds);
  if (metrics.mfu) add_value(summary, "train/mfu", *metrics.mfu);
  if (metrics.valid_loss) add_value(summary, "valid/loss", *metrics.valid_loss);
  std::string message;
  start_event(message, r.step).add_message(event::kSummary, summary);
  append(record_of(message));
}

void EventFile::go_back_to(int64_t steps_done) { append(restart_record(steps_done + 1)); }

void EventFile::append(const std::string& records) {
  write_fully(file_.get(), records, "write events to " + path_);
}

void EventFile::remove_all(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kStart) || !name.ends_with(kEnd)) continue;
    if (!fs::remove(entry.path(), error) && error)
      fail(ErrorKind::kIo, "remove {}: {}", entry.path().string(), error.message());
  }
}

}  // namespace gxp
