#include "lib/train/data_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/collective/communicator.h"
#include "lib/collective/gather_texts.h"

namespace gxp {
namespace {

constexpr size_t kMostLines = 8;
constexpr std::string_view kStatePrefix = "data.train[";

// What must be the same, as a checkpoint has it before the file's name.
std::string content_of(const DataFingerprint& file) {
  return fmt::format("{}; {} bytes; {} tokens; xxh3 {}; ", file.kind, file.bytes, file.tokens,
                     file.hash);
}

std::string hash_of(const std::vector<DataFingerprint>& files) {
  std::string text;
  for (const DataFingerprint& file : files) text += content_of(file) + "\n";
  return hash_hex(std::as_bytes(std::span(text)));
}

std::string name_of(const DataFingerprint& file) {
  return std::filesystem::path(file.path).filename().string();
}

// One line a file: content, name.
std::string to_text(const std::vector<DataFingerprint>& files) {
  std::string text;
  for (const DataFingerprint& file : files) text += content_of(file) + name_of(file) + "\n";
  return text;
}

std::vector<std::string> to_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// "text; 200000 bytes; 200000 tokens; corpus.txt": without the hash, for people.
std::string in_words(const std::string& line) {
  const size_t hash = line.find("xxh3 ");
  const size_t name = line.find("; ", hash);
  return hash == std::string::npos || name == std::string::npos
             ? line
             : line.substr(0, hash) + line.substr(name + 2);
}

bool has_same_content(const std::string& a, const std::string& b) {
  const auto content = [](const std::string& line) {
    return line.substr(0, line.find("; ", line.find("xxh3 ")));
  };
  return content(a) == content(b);
}

// The first difference of two lists of lines, where `theirs` is what `there` names: "rank 0".
std::string difference(const std::vector<std::string>& mine, const std::vector<std::string>& theirs,
                       const std::string& setting, const std::string& who,
                       const std::string& there) {
  const size_t both = std::min(mine.size(), theirs.size());
  for (size_t i = 0; i < both; ++i) {
    if (has_same_content(mine[i], theirs[i])) continue;
    const std::string a = in_words(mine[i]), b = in_words(theirs[i]);
    return fmt::format("{}[{}] is {} {}, and {} {}{}", setting, i, a, who, b, there,
                       a == b ? ", with other content" : "");
  }
  return fmt::format("{} has {} files {}, and {} {}", setting, mine.size(), who, theirs.size(),
                     there);
}

}  // namespace

void check_same_data(const std::vector<DataFingerprint>& mine, const std::string& setting,
                     Communicator& communicator) {
  const std::vector<std::string> hashes = gather_texts(communicator, hash_of(mine));
  const auto other =
      std::ranges::find_if(hashes, [&](const std::string& hash) { return hash != hashes.front(); });
  if (other == hashes.end()) return;
  const auto rank = int(other - hashes.begin());
  const bool tells = communicator.rank() == 0 || communicator.rank() == rank;
  const auto texts = gather_texts(communicator, tells ? to_text(mine) : "");
  fail(ErrorKind::kConfig, "start training: {}; give all ranks the same files",
       difference(to_lines(texts[size_t(rank)]), to_lines(texts.front()), setting,
                  fmt::format("on rank {}", rank), "on rank 0"));
}

void log_data(const std::vector<DataFingerprint>& data, const std::string& setting) {
  const size_t shown = data.size() > kMostLines + 1 ? kMostLines : data.size();
  for (size_t i = 0; i < shown; ++i)
    log_info("{}: {}: {}, {}, {}{} tokens{}", setting, data[i].path, data[i].kind,
             format_bytes(data[i].bytes),
             data[i].documents > 0 ? fmt::format("{} documents, ", data[i].documents) : "",
             data[i].tokens, data[i].rows > 0 ? fmt::format(" in {} rows", data[i].rows) : "");
  if (shown == data.size()) return;
  uint64_t bytes = 0, tokens = 0;
  for (size_t i = shown; i < data.size(); ++i) {
    bytes += data[i].bytes;
    tokens += data[i].tokens;
  }
  log_info("{}: {} more files to {}: {}, {} tokens", setting, data.size() - shown, data.back().path,
           format_bytes(bytes), tokens);
}

KeyValues data_state(const std::vector<DataFingerprint>& train) {
  KeyValues state;
  for (size_t i = 0; i < train.size(); ++i)
    state.emplace_back(fmt::format("{}{}]", kStatePrefix, i),
                       content_of(train[i]) + name_of(train[i]));
  return state;
}

void check_resumed_data(const Checkpoint& checkpoint, const std::vector<DataFingerprint>& train,
                        ChangedData changed, bool reports) {
  std::vector<std::string> saved;
  for (const auto& [key, value] : checkpoint.manifest().info.state)
    if (key.starts_with(kStatePrefix)) saved.push_back(value);
  if (saved.empty()) return;
  const std::vector<std::string> now = to_lines(to_text(train));
  if (std::ranges::equal(saved, now, has_same_content)) return;
  const std::string what = difference(now, saved, "data.train", "now", "in the checkpoint");
  if (changed == ChangedData::kRefuse)
    fail(ErrorKind::kConfig,
         "resume from {}: {}; put the files back, set data.changed = \"accept\" to continue with "
         "these at the same number of samples, or start without --resume, with model.init for its "
         "weights",
         checkpoint.path(), what);
  if (reports) log_warn("resume: {}; continuing, since data.changed is accept", what);
}

}  // namespace gxp
