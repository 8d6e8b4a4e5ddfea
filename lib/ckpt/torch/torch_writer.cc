#include "lib/ckpt/torch/torch_writer.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <span>

#include "lib/base/hash.h"
#include "lib/ckpt/torch/torch_tensors.h"
#include "lib/ckpt/zip/zip_writer.h"

namespace gxp {
namespace {

// "torch.storage.UntypedStorage": module and name.
void put_global(PickleWriter& pickle, std::string_view global) {
  const size_t dot = global.rfind('.');
  pickle.global(global.substr(0, dot), global.substr(dot + 1));
}

void put_torch_storage(PickleWriter& pickle, const TensorInfo& info, std::string_view key) {
  const std::string storage = torch_storage_name(info.dtype);
  pickle.begin_tuple();
  pickle.text("storage");
  put_global(pickle, storage.empty() ? "torch.storage.UntypedStorage" : storage);
  pickle.text(key);
  pickle.text("cpu");
  pickle.integer(int64_t(storage.empty() ? info.bytes() : info.count()));
  pickle.end_tuple();
  pickle.persistent();
}

// Of a tensor without elements, a size may exceed what torch can count.
void put_sizes(PickleWriter& pickle, const std::vector<uint64_t>& sizes, const std::string& name) {
  pickle.begin_tuple();
  for (const uint64_t size : sizes) {
    if (size > uint64_t(std::numeric_limits<int64_t>::max()))
      fail(ErrorKind::kConfig, "write tensor '{}': size {} exceeds torch's limit", name, size);
    pickle.integer(int64_t(size));
  }
  pickle.end_tuple();
}

// Without elements, any will do; the sizes' product may not fit.
std::vector<uint64_t> contiguous_strides(const TensorInfo& info) {
  std::vector<uint64_t> strides(info.shape.size(), 1);
  if (info.count() == 0) return strides;
  for (size_t k = strides.size(); k-- > 1;) strides[k - 1] = strides[k] * info.shape[k];
  return strides;
}

// Forty digits that tell archives apart; torch only logs them. It, too, makes them of the names and
// of the CRCs.
std::string make_serialization_id(const std::vector<ZipMember>& members) {
  std::string names, crcs;
  for (const ZipMember& member : members) {
    names += member.name + '\0';
    crcs += fmt::format("{:08x}", member.crc);
  }
  return fmt::format("{:020}{:020}", hash64(std::as_bytes(std::span(names))),
                     hash64(std::as_bytes(std::span(crcs))));
}

}  // namespace

void put_tensor(PickleWriter& pickle, const TensorInfo& info, std::string_view key) {
  const bool names_dtype = torch_storage_name(info.dtype).empty();
  pickle.global("torch._utils", names_dtype ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
  pickle.begin_tuple();
  put_torch_storage(pickle, info, key);
  pickle.integer(0);
  put_sizes(pickle, info.shape, info.name);
  put_sizes(pickle, contiguous_strides(info), info.name);
  pickle.boolean(false);
  pickle.begin_ordered_dict();
  pickle.end_dict();
  if (names_dtype) put_global(pickle, torch_dtype_name(info.dtype));
  pickle.end_tuple();
  pickle.reduce();
}

NamedTensor step_tensor(uint64_t step) {
  return {{"step", Role::kWeight, StorageDType::kF32, {}}, [step](uint64_t, Memory out) {
            const auto value = float(step);
            GXP_ASSERT(out.bytes == sizeof(value));
            std::memcpy(out.data, &value, sizeof(value));
          }};
}

uint64_t write_torch_archive(OutputFile& file, const std::string& root, std::string_view pickle,
                             const std::vector<const NamedTensor*>& tensors) {
  ZipWriter zip(file);
  zip.add(root + "/data.pkl", pickle);
  zip.add(root + "/.format_version", "1");
  zip.add(root + "/.storage_alignment", fmt::format("{}", kZipAlignment));
  zip.add(root + "/byteorder", "little");
  for (size_t i = 0; i < tensors.size(); ++i) {
    zip.begin(fmt::format("{}/data/{}", root, i), tensors[i]->info.bytes());
    stream(*tensors[i], [&](ConstMemory block) { zip.write(block); });
    zip.end();
  }
  zip.add(root + "/version", "3\n");
  zip.add(root + "/.data/serialization_id", make_serialization_id(zip.members()));
  return zip.finish();
}

}  // namespace gxp
