// .metadata of a checkpoint of torch.distributed.checkpoint (dcp.h): what it holds, and where.
//
// A pickle of torch.distributed.checkpoint.metadata.Metadata:
//   state_dict_metadata  {key: TensorStorageMetadata{properties, size, chunks}, or
//                         BytesStorageMetadata for what is no tensor}
//   planner_data         {key: path}: the keys of the nested state dict that "." joins to the key;
//                        None if it was not nested
//   storage_data         {MetadataIndex{fqn: key, offset}: _StorageInfo{relative_path, offset,
//                         length}}: where each chunk, or what is no tensor, lies
//   storage_meta, version
// Hostile until checked. Refused are: objects of other classes; keys that are empty, hold a NUL or
// occur twice, and paths that do not make their key; element types and layouts that gxp does not
// know; chunks that do not tile their tensor (tensor_boxes.h) or have no place, and places that
// belong to nothing; file names that are no plain names; transformed (compressed) chunks.
// Source: torch 2.15, torch/distributed/checkpoint/metadata.py, filesystem.py; earlier versions
// back to 2.1, whose TensorProperties are those of torch.distributed._shard.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/ckpt/named_tensors.h"
#include "lib/ckpt/tensor_boxes.h"
#include "lib/ckpt/zip/file_range.h"

namespace gxp {

constexpr size_t kMaxDcpKeyBytes = 4096;

// In file `file` of DcpMetadata, the archive of one torch.save.
struct DcpStorageInfo {
  size_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// One value of the state dict: its key, and the path that makes it.
struct DcpKey {
  std::string text;               // "optim.state.emb.weight.exp_avg"
  std::vector<std::string> path;  // {"optim", "state", "emb.weight", "exp_avg"}; indices as digits
};

struct DcpTensor {
  DcpKey key;
  StorageDType dtype = StorageDType::kF32;
  std::vector<uint64_t> shape = {};
  // As many; those without elements are left out.
  std::vector<TensorBox> chunks = {};
  std::vector<DcpStorageInfo> places = {};
};

struct DcpObject {
  DcpKey key;
  DcpStorageInfo place = {};
};

struct DcpMetadata {
  std::vector<std::string> files = {};  // names in the directory
  std::vector<DcpTensor> tensors = {};
  std::vector<DcpObject> objects = {};  // what is no tensor
};

// `range` is all of .metadata. Memory: the pickle's (pickle.h), and about as much again. Errors:
// kIo; kCorrupt, naming the file and the key.
DcpMetadata read_dcp_metadata(const FileRange& range);

}  // namespace gxp
