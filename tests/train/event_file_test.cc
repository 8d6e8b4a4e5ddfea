#include "lib/train/event_file.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <protozero/pbf_reader.hpp>

#include "lib/base/text_file.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

// Bit by bit, with the offset and rotation of TFRecords.
uint32_t masked_crc_of(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= uint8_t(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

template <class Number>
Number number_at(const std::string& bytes, size_t at) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

// The messages of a file; checks lengths and sums.
std::vector<std::string> messages_of(const std::string& file) {
  std::vector<std::string> messages;
  for (size_t at = 0; at < file.size();) {
    const auto length = number_at<uint64_t>(file, at);
    REQUIRE(length < file.size() - at);
    CHECK(number_at<uint32_t>(file, at + 8) == masked_crc_of({file.data() + at, 8}));
    messages.push_back(file.substr(at + 12, length));
    CHECK(number_at<uint32_t>(file, at + 12 + length) == masked_crc_of(messages.back()));
    at += 16 + length;
  }
  return messages;
}

// "step 3: train/loss 2.5, ...", "version brain.Event:2", "restart at 4".
std::string describe(const std::string& message) {
  std::string text;
  int64_t step = 0;
  protozero::pbf_reader event(message);
  while (event.next()) {
    if (event.tag() == 1) {
      CHECK(event.get_double() > 1.7e9);  // seconds since 1970
    } else if (event.tag() == 2) {
      step = event.get_int64();
    } else if (event.tag() == 3) {
      text = "version " + event.get_string();
    } else if (event.tag() == 7) {
      text = fmt::format("restart at {}", step);
      protozero::pbf_reader log = event.get_message();
      CHECK((log.next(1) && log.get_enum() == 1));
    } else {
      text = fmt::format("step {}:", step);
      protozero::pbf_reader summary = event.get_message();
      while (summary.next(1)) {
        protozero::pbf_reader value = summary.get_message();
        REQUIRE(value.next(1));
        const std::string tag = value.get_string();
        REQUIRE(value.next(2));
        text += fmt::format(" {} {}", tag, value.get_float());
      }
    }
  }
  return text;
}

std::vector<std::string> events_in(const std::string& directory) {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    for (const std::string& message : messages_of(read_text(entry.path(), UINT64_MAX)))
      texts.push_back(describe(message));
  return texts;
}

}  // namespace

// That TensorBoard reads them: peers/event_peers.py.
TEST_CASE("event files hold a run's scalars, and what a resumed run makes again is dropped",
          "[train]") {
  const TemporaryDirectory directory;
  StepMetrics metrics;
  metrics.result = {
      .step = 3, .loss = 2.5, .grad_norm = NAN, .lr = 0.25, .tokens = 6, .seconds = 2};
  {
    EventFile file(directory.path(), 0);
    file.write(metrics);
    metrics.valid_loss = 4;
    metrics.mfu = 0.5;
    metrics.result.step = 4;
    file.write(metrics);
    file.go_back_to(2);
  }
  const std::vector<std::string> expected = {
      "version brain.Event:2",
      "step 3: train/loss 2.5 train/grad_norm nan train/lr 0.25 train/tokens_per_s 3",
      "step 4: train/loss 2.5 train/grad_norm nan train/lr 0.25 train/tokens_per_s 3 train/mfu 0.5 "
      "valid/loss 4",
      "restart at 3"};
  CHECK(events_in(directory.path()) == expected);
  EventFile::remove_all(directory.path());
  CHECK(std::filesystem::is_empty(directory.path()));
  { const EventFile resumed(directory.path(), 7); }
  CHECK(events_in(directory.path()) ==
        std::vector<std::string>{"version brain.Event:2", "restart at 8"});
}

}  // namespace gxp
