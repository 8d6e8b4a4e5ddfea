// What the tests of checkpoints share: a directory that goes away, tensors in memory, errors.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/ckpt/named_tensors.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

namespace gxp {

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The names in a directory, hidden ones too.
inline std::vector<std::string> list(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// A tensor in memory whose elements are first, first + 1, ...
inline NamedTensor counting_tensor(const std::string& name, const std::vector<uint64_t>& shape,
                                   float first = 0, Role role = Role::kWeight) {
  TensorInfo info{name, role, StorageDType::kF32, shape};
  const auto values = std::make_shared<std::vector<float>>(info.count());  // owner: the reader
  for (size_t i = 0; i < values->size(); ++i) (*values)[i] = first + float(i);
  return {std::move(info), [values](uint64_t begin, Memory out) {
            std::memcpy(out.data, values->data() + begin, out.bytes);
          }};
}

// Content by role and name: what two checkpoints that hold the same have in common.
inline std::map<std::string, std::string> digests(const NamedTensors& tensors) {
  std::map<std::string, std::string> result;
  for (const NamedTensor& tensor : tensors.tensors) {
    const TensorInfo& info = tensor.info;
    result[fmt::format("{} {}", to_string(info.role), info.name)] = fmt::format(
        "{} ({}) {}", to_string(info.dtype), fmt::join(info.shape, ", "), sha256_hex(tensor));
  }
  return result;
}

// Two weights with Adam's moments, in the middle of a run.
inline NamedTensors training_run() {
  return {.tensors = {counting_tensor("w", {2, 3}), counting_tensor("b", {3}, 7),
                      counting_tensor("w", {2, 3}, 1, Role::kAdamM),
                      counting_tensor("w", {2, 3}, 2, Role::kAdamV),
                      counting_tensor("b", {3}, 3, Role::kAdamM),
                      counting_tensor("b", {3}, 4, Role::kAdamV)},
          .config = {{"model.heads", "3"}, {"optim.lr", "0.25"}},
          .state = {{"rng", "1 2"}},
          .step = 7,
          .samples_consumed = 99};
}

}  // namespace gxp
