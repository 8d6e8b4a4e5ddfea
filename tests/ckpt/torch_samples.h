// What the tests of torch's files share: bytes as ranges of a file, archives around a pickle, and
// values as text.
#pragma once

#include <string>
#include <vector>

#include "lib/ckpt/torch/pickle.h"
#include "lib/ckpt/torch/torch_writer.h"
#include "lib/ckpt/zip/file_range.h"
#include "tests/ckpt/samples.h"

namespace gxp {

inline const std::string kTorchFixtures = GXP_TEST_DATA "/ckpt/torch_pt/";

// The bytes as a file in `dir`.
inline FileRange range_of(const TemporaryDirectory& dir, const std::string& bytes) {
  const std::string path = dir / "bytes";
  write_bytes(path, bytes);
  return FileRange::open(path);
}

// A file that torch.save might have made of this pickle, with these tensors' bytes as storages.
inline std::string write_archive(const TemporaryDirectory& dir, const std::string& pickle,
                                 const std::vector<NamedTensor>& storages) {
  std::string path = dir / "archive.pt";
  std::vector<const NamedTensor*> pointers;
  for (const NamedTensor& storage : storages) pointers.push_back(&storage);
  OutputFile file(path);
  write_torch_archive(file, "archive", pickle, pointers);
  file.close();
  return path;
}

// Much as Python shows it; objects as "module.name(arguments)" and " with STATE", what they got in
// brackets after that. Down to `depth`.
inline std::string render(PickleValue value, int depth = 8) {
  using enum PickleKind;
  if (depth == 0) return "...";
  const auto list = [&](const char* begin, const char* end) {
    std::string text = begin;
    for (size_t i = 0; i < value.size(); ++i)
      text += (i == 0 ? "" : ", ") + render(value.item(i), depth - 1);
    return text + end;
  };
  switch (value.kind()) {
    case kInteger:
      return fmt::format("{}", value.integer());
    case kFloat:
      return fmt::format("{}", value.real());
    case kText:
      return fmt::format("'{}'", value.text());
    case kBytes:
      return fmt::format("b{}", value.text().size());
    case kTuple:
      return list("(", ")");
    case kList:
      return list("[", "]");
    case kSet:
      return list("<", ">");
    case kPersistent:
      return "@" + render(value.arguments(), depth - 1);
    case kObject: {
      std::string text =
          std::string(value.callable().text()) + render(value.arguments(), depth - 1);
      if (!value.state().is_none()) text += " with " + render(value.state(), depth - 1);
      return value.size() == 0 ? text : text + list(" [", "]");
    }
    case kDict: {
      std::string text = "{";
      for (size_t i = 0; i < value.size(); ++i)
        text += (i == 0 ? "" : ", ") + render(value.key(i), depth - 1) + ": " +
                render(value.value(i), depth - 1);
      return text + "}";
    }
    default:
      return value.describe();
  }
}

}  // namespace gxp
