#include "lib/net/launch/held_parts.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "lib/base/deadline.h"
#include "lib/base/error.h"
#include "lib/net/store/store.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr size_t kPieceBytes = size_t{8} << 20;
constexpr size_t kPiecesUnderWay = 2;
constexpr auto kPiecePatience = 30s;

std::string given(int host, size_t piece) { return fmt::format("given {} {}", host, piece); }
std::string taken(int host, size_t piece) { return fmt::format("taken {} {}", host, piece); }

// A file is pieces of kPieceBytes and a shorter one, which may be empty.
std::string read_piece(std::ifstream& in, const std::string& path) {
  std::string piece(kPieceBytes, '\0');
  in.read(piece.data(), std::streamsize(piece.size()));
  if (in.bad() || (in.fail() && !in.eof())) fail(ErrorKind::kIo, "read {}", path);
  piece.resize(size_t(in.gcount()));
  return piece;
}

// Where a file goes. kPeer: its name leads elsewhere.
fs::path place_of(const std::string& directory, const fs::path& file) {
  const bool leads_away = file.is_absolute() || file.lexically_normal() != file ||
                          std::distance(file.begin(), file.end()) != 2 || *file.begin() == "..";
  if (leads_away) fail(ErrorKind::kPeer, "take a replica's file: it is named {}", file.string());
  return directory / file;
}

class FileWriter {
 public:
  explicit FileWriter(const fs::path& path) : path_(path) {
    std::error_code none;
    fs::create_directory(path.parent_path(), none);
    errno = 0;
    out_.open(path, std::ios::binary | std::ios::trunc);
    check();
  }
  // Nothing is written after an error.
  void add(const std::string& piece) {
    if (!error_.empty()) return;
    out_.write(piece.data(), std::streamsize(piece.size())).flush();
    check();
  }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  void check() {
    if (!out_)
      error_ = fmt::format("write {}: {}", path_.string(), std::generic_category().message(errno));
  }

  fs::path path_;
  std::ofstream out_;
  std::string error_;
};

}  // namespace

std::vector<FilesToGive> files_to_give(std::span<const HostHoldings> hosts, int64_t saved) {
  struct Held {
    const HeldPart* part;
    const HostHoldings* host;  // one that takes part, if there is one
  };
  using Replica = std::map<std::pair<int, bool>, Held>;
  std::map<std::pair<uint64_t, std::string>, Replica, std::greater<>> newest_first;
  for (const HostHoldings& host : hosts) {
    for (const HeldPart& part : host.parts) {
      if (int64_t(part.step) <= saved) continue;
      Held& held = newest_first[{part.step, part.job}][{part.rank, part.frozen}];
      if (held.host == nullptr || host.takes_part) held = {&part, &host};
    }
  }
  std::map<int, std::vector<std::string>> by_host;
  for (const auto& [_, replica] : newest_first) {
    if (int(replica.size()) != replica.begin()->second.part->parts) continue;
    for (const auto& [key, held] : replica) {
      if (held.host->takes_part) continue;
      std::vector<std::string>& files = by_host[held.host->host];
      files.insert(files.end(), held.part->files.begin(), held.part->files.end());
    }
    break;
  }
  std::vector<FilesToGive> to_give;
  for (auto& [host, files] : by_host) to_give.push_back({host, std::move(files)});
  return to_give;
}

void give_files(Store& store, int host, std::span<const std::string> files,
                const std::string& directory) {
  size_t next = 0;
  for (const std::string& file : files) {
    const std::string path = directory + "/" + file;
    std::ifstream in(path, std::ios::binary);
    if (!in) fail(ErrorKind::kIo, "open {}", path);
    for (bool ends = false; !ends; ++next) {
      if (next >= kPiecesUnderWay) {
        store.get(taken(host, next - kPiecesUnderWay), Deadline::after(kPiecePatience), 0);
        store.set(given(host, next - kPiecesUnderWay), "");  // frees it
      }
      const std::string piece = read_piece(in, path);
      store.set(given(host, next), piece);
      ends = piece.size() < kPieceBytes;
    }
  }
}

std::string take_files(Store& store, int host, std::span<const std::string> files,
                       const std::string& directory) {
  std::vector<fs::path> paths;
  for (const std::string& file : files) paths.push_back(place_of(directory, file));
  std::string error;
  size_t next = 0;
  for (const fs::path& path : paths) {
    std::optional<FileWriter> out;
    if (error.empty()) out.emplace(path);
    for (bool ends = false; !ends; ++next) {
      const std::string piece = store.get(given(host, next), Deadline::after(kPiecePatience), host);
      store.set(taken(host, next), "");
      if (out) out->add(piece);
      ends = piece.size() < kPieceBytes;
    }
    if (out) error = out->error();
  }
  std::error_code none;
  if (!error.empty())
    for (const fs::path& path : paths) fs::remove(path, none);
  return error;
}

}  // namespace gxp
