// The network of the library that stands for NCCL: what ranks post and look up by name, within a
// process, or among processes with one folder FAKE_NCCL_BOARD.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace gxp::fake_nccl {

using Bytes = std::vector<std::byte>;

// What ranks tell each other, by a name that both know. Never taken down.
inline std::mutex board_mutex;
inline std::map<std::string, Bytes> board;  // guarded by board_mutex

// Where a name is posted for other processes; "": nowhere.
inline std::string file_of(std::string name) {
  const char* const folder = std::getenv("FAKE_NCCL_BOARD");
  if (folder == nullptr) return "";
  for (char& c : name)
    if (c == '/') c = '_';
  return std::string(folder) + "/" + name;
}

inline void post(const std::string& name, Bytes data) {
  const std::lock_guard lock(board_mutex);
  if (const std::string file = file_of(name); !file.empty()) {
    const std::string early = file + ".early";
    std::ofstream(early, std::ios::binary)
        .write(reinterpret_cast<const char*>(data.data()), std::streamsize(data.size()));
    std::filesystem::rename(early, file);
  }
  board[name] = std::move(data);
}

inline Bytes bytes_at(const void* data, size_t bytes) {
  const auto* first = static_cast<const std::byte*>(data);
  return {first, first + bytes};
}

inline const Bytes* look_up(const std::string& name) {
  const std::lock_guard lock(board_mutex);
  const auto found = board.find(name);
  if (found != board.end()) return &found->second;
  std::ifstream file(file_of(name), std::ios::binary);
  if (!file) return nullptr;
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  return &(board[name] = bytes_at(text.data(), text.size()));
}

}  // namespace gxp::fake_nccl
