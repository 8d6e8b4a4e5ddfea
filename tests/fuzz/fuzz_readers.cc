// Readers of hostile text, driven by libFuzzer: gxp_fuzz --reader=NAME, NAME one of
// topology_sources(), or "any": as the content decides. Whatever the bytes, a reader makes a
// topology or says what is wrong; what it has made can be written and drawn. "pt" reads the bytes
// as a file of torch.save, and as a pickle; what it has made can be read to its end.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/torch/pickle.h"
#include "lib/ckpt/torch/pt_file.h"
#include "lib/topo/nccl/nccl_paths.h"
#include "lib/topo/read/nccl_xml.h"
#include "lib/topo/read/sources.h"

namespace gxp {
namespace {

const TopologySource* reader = nullptr;  // null: any

Topology read(const SourceInput& input) {
  if (reader != nullptr) return reader->load(input);
  for (const TopologySource& source : topology_sources()) {
    if (source.recognises(input)) return source.load(input);
  }
  return {};
}

// NCCL's XML that gxp has written is read as the same.
void write_again(const HostTree& host) {
  const std::string written = write_nccl_xml(host);
  if (write_nccl_xml(read_nccl_xml(written, "written")) != written) std::abort();
}

// Writing and paths cost the square of a host's size and more: large hosts are read alone, so that
// the inputs go to the reader.
constexpr size_t kUsedParts = 64;

void use(const Topology& topology) {
  for (const HostTree& host : topology.trees) {
    if (host.parts().size() > kUsedParts) continue;
    try {
      const NcclPaths paths(host);
      for (const PartId from : paths.gpus()) {
        for (const PartId to : paths.ports()) static_cast<void>(paths.find(from, to));
      }
      write_again(host);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kConfig) throw;  // a limit, or a GPU without a bus id
    }
  }
}

// Of what is read in a test, not more: a tensor may claim more than its file.
constexpr uint64_t kReadBytes = uint64_t{1} << 20;

void read_torch(const uint8_t* data, size_t size) {
  static const int file = ::memfd_create("input", 0);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != ssize_t(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (size > 0 && data[0] == 0x80) {
    try {
      static_cast<void>(Pickle::read(FileRange::open(path)));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) throw;
    }
  }
  for (const NamedTensor& tensor : read_pt(path).tensors) {
    if (tensor.info.bytes() <= kReadBytes) sha256_hex(tensor);
  }
}

bool torch = false;

bool choose(std::string_view name) {
  torch = name == "pt";
  if (torch) set_log_level(LogLevel::kError);
  if (name == "any" || torch) return true;
  for (const TopologySource& source : topology_sources()) {
    if (source.name == name) reader = &source;
  }
  return reader != nullptr;
}

}  // namespace
}  // namespace gxp

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with("--reader=") && gxp::choose(argument.substr(9))) return 0;
  }
  std::fprintf(stderr, "gxp_fuzz: --reader=NAME is missing or unknown\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    if (gxp::torch) {
      gxp::read_torch(data, size);
      return 0;
    }
    gxp::use(gxp::read({.name = "input",
                        .form = gxp::SourceForm::kFile,
                        .text = std::string(reinterpret_cast<const char*>(data), size)}));
  } catch (const gxp::Error& error) {
    if (error.kind() == gxp::ErrorKind::kInternal) std::abort();
  }
  return 0;
}
