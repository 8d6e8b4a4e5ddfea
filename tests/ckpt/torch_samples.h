// What the tests of torch's files share: bytes as ranges of a file, archives around a pickle,
// training programs' dicts, and values as text.
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

// What torch.save might have made, in the making.
class TorchSample {
 public:
  using Shape = std::vector<uint64_t>;
  PickleWriter pickle;

  void tensor(const Shape& shape, float first) {
    storages_.push_back(counting_tensor("s", shape, first));
    put_tensor(pickle, storages_.back().info, fmt::format("{}", storages_.size() - 1));
  }
  void begin(const char* key) {
    pickle.text(key);
    pickle.begin_dict();
  }
  void number(const char* key, int64_t value) {
    pickle.text(key);
    pickle.integer(value);
  }
  // Weights "w0", "w1", ... under `key`.
  void weights(const char* key, const std::vector<Shape>& shapes) {
    begin(key);
    for (size_t i = 0; i < shapes.size(); ++i) {
      pickle.text(fmt::format("w{}", i));
      tensor(shapes[i], float(i));
    }
    pickle.end_dict();
  }
  // Adam's state of so many parameters, each after its own number of steps; "" of no more.
  void states(const std::vector<Shape>& shapes, const std::vector<float>& steps,
              const char* more = "") {
    begin("state");
    for (size_t i = 0; i < shapes.size(); ++i) {
      pickle.integer(int64_t(i));
      pickle.begin_dict();
      pickle.text("step");
      tensor({}, steps[i]);
      for (const char* kept : {"exp_avg", "exp_avg_sq", more}) {
        if (*kept == '\0') continue;
        pickle.text(kept);
        tensor(shapes[i], float(10 * i));
      }
      pickle.end_dict();
    }
    pickle.end_dict();
  }
  // A group of the parameters first to last.
  void group(double rate, double decay, int64_t first, int64_t last, bool has_names = true) {
    pickle.begin_dict();
    const auto real = [&](const char* key, double value) {
      pickle.text(key);
      pickle.real(value);
    };
    real("lr", rate);
    real("initial_lr", 2 * rate);
    pickle.text("betas");
    pickle.begin_tuple();
    pickle.real(0.9);
    pickle.real(0.95);
    pickle.end_tuple();
    real("eps", 1e-8);
    real("weight_decay", decay);
    pickle.text("foreach");
    pickle.none();
    pickle.text("params");
    pickle.begin_list();
    for (int64_t i = first; i <= last; ++i) pickle.integer(i);
    pickle.end_list();
    if (has_names) {
      pickle.text("param_names");
      pickle.begin_list();
      for (int64_t i = first; i <= last; ++i) pickle.text(fmt::format("w{}", i));
      pickle.end_list();
    }
    pickle.end_dict();
  }
  // Adam's of kThree, after one step.
  void optimizer() {
    pickle.begin_dict();
    states({{4, 2}, {4, 2}, {4}}, {1, 1, 1});
    pickle.text("param_groups");
    pickle.begin_list();
    group(0.1, 0, 0, 2);
    pickle.end_list();
    pickle.end_dict();
  }
  std::string write(const TemporaryDirectory& dir) {
    return write_archive(dir, pickle.finish(), storages_);
  }

 private:
  std::vector<NamedTensor> storages_;
};

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
