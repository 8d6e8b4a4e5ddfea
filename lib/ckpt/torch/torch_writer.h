// Writes what torch.save would write (torch_archive.h), for torch.load(weights_only=True).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/file.h"
#include "lib/ckpt/named_tensors.h"
#include "lib/ckpt/torch/pickle_writer.h"

namespace gxp {

// Puts the call that rebuilds a contiguous tensor of this type and shape, alone in the storage
// `key`, on the CPU. kConfig: a size of 2^63 or more, which torch does not have.
void put_tensor(PickleWriter& pickle, const TensorInfo& info, std::string_view key);

// A parameter's count of steps as torch's optimizers keep it: a scalar of float32.
NamedTensor step_tensor(uint64_t step);

// Writes the archive from the file's present end on: the pickle, then each tensor's bytes as the
// storage with the tensor's index in the list as its key ("0", "1", ...). `root` is the folder in
// the archive; torch takes "archive", or the file's name without its end. Returns the archive's
// length. Cost: the tensors through one buffer of 4 MiB. Errors: kIo, and those of the tensors.
uint64_t write_torch_archive(OutputFile& file, const std::string& root, std::string_view pickle,
                             const std::vector<const NamedTensor*>& tensors);

}  // namespace gxp
