// What other libraries have recorded of their models: safetensors files.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "lib/ckpt/format.h"
#include "tests/catch.h"

namespace gxp {

template <class Element>
std::vector<Element> read_all(const NamedTensors& file, const std::string& name) {
  const NamedTensor* tensor = find_tensor(file, name);
  REQUIRE(tensor != nullptr);
  std::vector<Element> values(tensor->info.count());
  tensor->read(0, memory_of(values));
  return values;
}

// The recorded rows, input_ids, as a .i32 file: inputs and targets, one position on.
inline void write_rows(const std::string& path, const NamedTensors& reference) {
  const auto ids = read_all<int64_t>(reference, "input_ids");
  const std::vector<int32_t> tokens(ids.begin(), ids.end());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(tokens.data()),
             std::streamsize(tokens.size() * sizeof(int32_t)));
}

}  // namespace gxp
