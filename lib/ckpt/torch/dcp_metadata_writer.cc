#include "lib/ckpt/torch/dcp_metadata_writer.h"

#include <string_view>

#include "lib/ckpt/torch/pickle_writer.h"
#include "lib/ckpt/torch/torch_tensors.h"

namespace gxp {
namespace {

constexpr std::string_view kDcpClasses = "torch.distributed.checkpoint.metadata";

// Begins an object of this class and the dict of its members.
void begin_dcp_object(PickleWriter& pickle, std::string_view module, std::string_view name) {
  pickle.global(module, name);
  pickle.begin_tuple();
  pickle.end_tuple();
  pickle.new_object();
  pickle.begin_dict();
}

void end_dcp_object(PickleWriter& pickle) {
  pickle.end_dict();
  pickle.build();
}

void put_dcp_size(PickleWriter& pickle, const std::vector<uint64_t>& sizes) {
  pickle.global("torch", "Size");
  pickle.begin_tuple();
  pickle.begin_tuple();
  for (const uint64_t size : sizes) pickle.integer(int64_t(size));
  pickle.end_tuple();
  pickle.end_tuple();
  pickle.reduce();
}

template <class PutArgument>
void put_dcp_call(PickleWriter& pickle, std::string_view module, std::string_view name,
                  PutArgument put_argument) {
  pickle.global(module, name);
  pickle.begin_tuple();
  put_argument();
  pickle.end_tuple();
  pickle.reduce();
}

// Five properties: versions before 2.6 do not know the sixth, the strides.
void put_dcp_properties(PickleWriter& pickle, StorageDType dtype) {
  pickle.global(kDcpClasses, "TensorProperties");
  pickle.begin_tuple();
  pickle.end_tuple();
  pickle.new_object();
  pickle.begin_tuple();
  const std::string name = torch_dtype_name(dtype);
  pickle.global("torch", std::string_view(name).substr(name.find('.') + 1));
  put_dcp_call(pickle, "torch.serialization", "_get_layout", [&] { pickle.text("torch.strided"); });
  pickle.boolean(false);  // requires_grad
  put_dcp_call(pickle, kDcpClasses, "_MEM_FORMAT_ENCODING",
               [&] { pickle.integer(0); });  // contiguous
  pickle.boolean(false);                     // pin_memory
  pickle.end_tuple();
  pickle.build();
}

void put_dcp_entry(PickleWriter& pickle, const DcpWritten& entry) {
  if (!entry.tensor) {
    pickle.global(kDcpClasses, "BytesStorageMetadata");
    pickle.begin_tuple();
    pickle.end_tuple();
    return pickle.new_object();
  }
  begin_dcp_object(pickle, kDcpClasses, "TensorStorageMetadata");
  pickle.text("properties");
  put_dcp_properties(pickle, entry.tensor->dtype);
  pickle.text("size");
  put_dcp_size(pickle, entry.tensor->shape);
  pickle.text("chunks");
  pickle.begin_list();
  begin_dcp_object(pickle, kDcpClasses, "ChunkStorageMetadata");
  pickle.text("offsets");
  put_dcp_size(pickle, std::vector<uint64_t>(entry.tensor->shape.size(), 0));
  pickle.text("sizes");
  put_dcp_size(pickle, entry.tensor->shape);
  end_dcp_object(pickle);
  pickle.end_list();
  end_dcp_object(pickle);
}

// Indices of lists are ints: those of "optim.param_groups".
void put_dcp_path(PickleWriter& pickle, const std::vector<std::string>& path) {
  pickle.begin_tuple();
  for (size_t i = 0; i < path.size(); ++i) {
    if (i == 2 && path[1] == "param_groups") {
      pickle.integer(std::stoll(path[i]));
    } else {
      pickle.text(path[i]);
    }
  }
  pickle.end_tuple();
}

void put_dcp_place(PickleWriter& pickle, const DcpWritten& entry,
                   const std::vector<std::string>& files) {
  begin_dcp_object(pickle, kDcpClasses, "MetadataIndex");
  pickle.text("fqn");
  pickle.text(entry.key.text);
  if (entry.tensor) {
    pickle.text("offset");
    put_dcp_size(pickle, std::vector<uint64_t>(entry.tensor->shape.size(), 0));
    pickle.text("index");
    pickle.integer(0);
  }
  end_dcp_object(pickle);
  begin_dcp_object(pickle, "torch.distributed.checkpoint.filesystem", "_StorageInfo");
  pickle.text("relative_path");
  pickle.text(files[entry.place.file]);
  pickle.text("offset");
  pickle.integer(int64_t(entry.place.offset));
  pickle.text("length");
  pickle.integer(int64_t(entry.place.bytes));
  end_dcp_object(pickle);
}

}  // namespace

std::string make_dcp_metadata(const std::vector<DcpWritten>& entries,
                              const std::vector<std::string>& files) {
  PickleWriter pickle;
  begin_dcp_object(pickle, kDcpClasses, "Metadata");
  pickle.text("state_dict_metadata");
  pickle.begin_dict();
  for (const DcpWritten& entry : entries) {
    pickle.text(entry.key.text);
    put_dcp_entry(pickle, entry);
  }
  pickle.end_dict();
  pickle.text("planner_data");
  pickle.begin_dict();
  for (const DcpWritten& entry : entries) {
    pickle.text(entry.key.text);
    put_dcp_path(pickle, entry.key.path);
  }
  pickle.end_dict();
  pickle.text("storage_data");
  pickle.begin_dict();
  for (const DcpWritten& entry : entries) put_dcp_place(pickle, entry, files);
  pickle.end_dict();
  pickle.text("storage_meta");
  pickle.none();
  pickle.text("version");
  pickle.text("1.0.0");
  end_dcp_object(pickle);
  return pickle.finish();
}

}  // namespace gxp
