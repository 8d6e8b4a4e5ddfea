#include "lib/ckpt/read_ahead.h"

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

std::vector<const NamedTensor*> pointers_to(const std::vector<NamedTensor>& tensors) {
  std::vector<const NamedTensor*> pointers;
  for (const NamedTensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

// Tensors of which the last cannot be read.
std::vector<NamedTensor> failing_tensors() {
  std::vector<NamedTensor> tensors = {counting_tensor("a", {3'000'000}), counting_tensor("b", {1})};
  tensors[1].read = [](uint64_t, Memory) { fail(ErrorKind::kIo, "the disk is gone"); };
  return tensors;
}

}  // namespace

TEST_CASE("tensors that are read ahead arrive whole and in order", "[ckpt]") {
  const std::vector<NamedTensor> tensors = {
      counting_tensor("long", {10'000'019}), counting_tensor("empty", {0, 3}),
      counting_tensor("one", {}, 5), counting_tensor("short", {7})};
  std::vector<std::string> names;
  std::map<std::string, std::string> content;
  stream_ahead(pointers_to(tensors), [&](const NamedTensor& tensor, ConstMemory block) {
    if (names.empty() || names.back() != tensor.info.name) names.push_back(tensor.info.name);
    CHECK(block.bytes <= kStreamedBytes);
    content[tensor.info.name].append(reinterpret_cast<const char*>(block.data), block.bytes);
  });
  CHECK(names == std::vector<std::string>{"long", "empty", "one", "short"});
  for (const NamedTensor& tensor : tensors) {
    std::string expected(tensor.info.bytes(), '\0');
    if (!expected.empty()) tensor.read(0, memory_of(expected));
    CHECK((content[tensor.info.name] == expected));
  }
  stream_ahead({}, [](const NamedTensor&, ConstMemory) { FAIL("there is none"); });
}

TEST_CASE("a tensor that cannot be read fails after those before it", "[ckpt]") {
  const std::vector<NamedTensor> tensors = failing_tensors();
  size_t bytes = 0;
  const auto [kind, text] = error_of([&] {
    stream_ahead(pointers_to(tensors),
                 [&](const NamedTensor&, ConstMemory block) { bytes += block.bytes; });
  });
  CHECK(kind == ErrorKind::kIo);
  CHECK(text == "the disk is gone");
  CHECK(bytes == tensors[0].info.bytes());
}

TEST_CASE("a target that fails stops the reading ahead", "[ckpt]") {
  const std::vector<NamedTensor> tensors = failing_tensors();
  CHECK_THROWS_AS(
      stream_ahead(pointers_to(tensors),
                   [](const NamedTensor&, ConstMemory) { throw std::runtime_error("full"); }),
      std::runtime_error);
}

}  // namespace gxp
