#include "lib/ckpt/native/export_directory.h"

#include <algorithm>
#include <array>
#include <memory>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/cast.h"
#include "lib/ckpt/finished_files.h"
#include "lib/ckpt/format.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/huggingface.h"
#include "lib/ckpt/native/checkpoint.h"
#include "lib/ckpt/peft/peft.h"

namespace gxp {
namespace {

// As write_checkpoint() calls the directory: at last, while it is written, and what it replaces.
constexpr std::array<std::string_view, 3> kDirectories = {"huggingface/", ".partial-huggingface/",
                                                          ".replaced-huggingface/"};

NamedTensors read_weights_only(const std::string& step_directory, const std::stop_token& stop) {
  NamedTensors tensors = read_gxp_checkpoint(step_directory);
  std::erase_if(tensors.tensors, [](const auto& t) { return t.info.role != Role::kWeight; });
  for (NamedTensor& tensor : tensors.tensors) {
    tensor.read = [read = std::move(tensor.read), stop](uint64_t begin, Memory out) {
      if (stop.stop_requested()) fail(ErrorKind::kPeer, "export weights: the run has ended");
      read(begin, out);
    };
  }
  return tensors;
}

void add_origin(const std::string& origin, NamedTensors& tensors) {
  if (!is_huggingface(origin)) return;
  NamedTensors model = read_huggingface(origin);
  tensors.companions = std::move(model.companions);
  tensors.metadata[kConfigText] = model.metadata[kConfigText];
}

void add_tokenizer(const std::string& directory, NamedTensors& tensors) {
  if (directory.empty()) return;
  const auto is_of_model = [](const std::string& file) {
    return file.ends_with("/generation_config.json");
  };
  std::erase_if(tensors.companions, [&](const std::string& file) { return !is_of_model(file); });
  for (std::string& file : companions_of(directory))
    if (!is_of_model(file)) tensors.companions.push_back(std::move(file));
}

}  // namespace

bool is_export_file(std::string_view name) {
  return std::ranges::any_of(kDirectories, [&](std::string_view directory) {
    if (!name.starts_with(directory)) return false;
    const std::string_view inside = name.substr(directory.size());
    return inside.empty() || is_huggingface_file(inside) || is_peft_file(inside) ||
           inside == kFinishedFiles;
  });
}

std::string export_weights(const std::string& step_directory, const ExportOptions& options,
                           const std::stop_token& stop) {
  std::string path = step_directory + "/" + kExportName;
  NamedTensors tensors = read_weights_only(step_directory, stop);
  add_origin(options.origin, tensors);
  add_tokenizer(options.tokenizer, tensors);
  const auto overflowed = std::make_shared<OverflowCount>(0);  // owners: here and the readers
  tensors = cast_weights(std::move(tensors), options.dtype, overflowed);
  const char* format = has_adapters(tensors) ? "peft" : "huggingface";
  write_checkpoint(tensors, find_format(format), path, {.replace = true});
  if (*overflowed > 0)
    log_warn("{}: {} numbers exceed the largest {} and have become infinite", path,
             overflowed->load(), to_string(options.dtype));
  return path;
}

}  // namespace gxp
