#include "tests/fuzz/checkpoint_inputs.h"

#include <cstdlib>
#include <span>

#include "lib/base/hash.h"
#include "lib/ckpt/format.h"
#include "lib/ckpt/native/manifest.h"
#include "lib/ckpt/torch/dcp_metadata.h"
#include "lib/ckpt/torch/dcp_names.h"
#include "lib/ckpt/torch/pt_file.h"
#include "lib/ckpt/torch/torch_writer.h"
#include "tests/fuzz/memory_file.h"

namespace gxp {
namespace {

// As much is read of one input: a view of few bytes may claim many.
constexpr uint64_t kReadBytes = uint64_t{1} << 20;

void use(const NamedTensors& tensors) {
  uint64_t left = kReadBytes;
  for (const NamedTensor& tensor : tensors.tensors) {
    if (tensor.info.bytes() > left) continue;
    left -= tensor.info.bytes();
    sha256_hex(tensor);
  }
}

// Under a hash that fits, which no mutation would find.
void read_manifest_input(const std::string& bytes) {
  constexpr std::string_view kHash = ",\n\"self_xxh3_128\":\"";
  std::string text = bytes.substr(0, bytes.rfind(kHash));
  const std::string hash = hash_hex(std::as_bytes(std::span(text.data(), text.size())));
  parse_manifest(text.append(kHash).append(hash).append("\"}\n"), "input");
}

void read_dcp_input(const std::string& bytes) {
  const DcpMetadata metadata = read_dcp_metadata(FileRange::open(path_of_bytes(bytes)));
  if (name_dcp_tensors(metadata.tensors).size() != metadata.tensors.size()) std::abort();
}

// The pickle of a file with four storages of 4 KiB: "0" to "3", as torch.save calls them.
void read_pickle_input(const std::string& bytes) {
  const NamedTensor storage{
      {"storage", Role::kWeight, StorageDType::kU8, {4096}},
      [](uint64_t, Memory out) { std::fill_n(out.data, out.bytes, std::byte{1}); }};
  const std::string path = path_of_bytes("");
  OutputFile file(path);
  write_torch_archive(file, "archive", bytes, {&storage, &storage, &storage, &storage});
  file.close();
  use(read_pt(path));
}

constexpr struct {
  std::string_view name;
  bool is_pickle;
  void (*read)(const std::string& bytes);
} kParts[] = {{"manifest", false, read_manifest_input},
              {"dcp", true, read_dcp_input},
              {"pickle", true, read_pickle_input}};

}  // namespace

std::optional<CheckpointInput> find_checkpoint_input(std::string_view name) {
  for (const auto& part : kParts) {
    if (part.name == name) return CheckpointInput{part.is_pickle, part.read};
  }
  for (const CheckpointFormat& format : kFormats) {
    if (format.name == name)
      return CheckpointInput{false, [read = format.read](const std::string& bytes) {
                               use(read(path_of_bytes(bytes)));
                             }};
  }
  return std::nullopt;
}

}  // namespace gxp
