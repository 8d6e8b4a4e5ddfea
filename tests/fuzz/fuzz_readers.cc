// Readers of hostile input, driven by libFuzzer: gxp_fuzz --reader=NAME, NAME one of
// topology_sources(), "any" (a topology, as the content decides), of find_checkpoint_input(), of
// find_data_input(), or of find_tokenizer_input().
// Whatever the bytes, a reader makes something or says what is wrong; what it has made can be used.
// A topology can be written and drawn.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/nccl/nccl_paths.h"
#include "tests/fuzz/checkpoint_inputs.h"
#include "tests/fuzz/data_inputs.h"
#include "tests/fuzz/pickle_mutator.h"
#include "tests/fuzz/tokenizer_inputs.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace gxp {
namespace {

const TopologySource* reader = nullptr;     // null: any
std::optional<CheckpointInput> checkpoint;  // nothing: a topology, or data
std::optional<std::function<void(const std::string& bytes)>> read_data;

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
  for (const auto& tree : topology.trees) {
    const HostTree& host = *tree;
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

bool choose(std::string_view name) {
  if (name == "any") return true;
  checkpoint = find_checkpoint_input(name);
  if (!checkpoint) checkpoint = find_tokenizer_input(name);
  read_data = find_data_input(name);
  if (checkpoint || read_data) {
    set_log_level(LogLevel::kError);
    return true;
  }
  for (const TopologySource& source : topology_sources()) {
    if (source.name == name) reader = &source;
  }
  return reader != nullptr;
}

void read_input(const std::string& bytes) {
  if (checkpoint)
    checkpoint->read(bytes);
  else if (read_data)
    (*read_data)(bytes);
  else
    use(read({.name = "input", .form = SourceForm::kFile, .text = bytes}));
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

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  constexpr unsigned kBytesAlone = 8;  // one in so many pickles is altered as bytes
  if (!gxp::checkpoint || !gxp::checkpoint->is_pickle || seed % kBytesAlone == 0)
    return LLVMFuzzerMutate(data, size, max_size);
  const std::string altered = gxp::mutate_pickle({reinterpret_cast<const char*>(data), size}, seed);
  if (altered.empty() || altered.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  return altered.copy(reinterpret_cast<char*>(data), altered.size());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    gxp::read_input({reinterpret_cast<const char*>(data), size});
  } catch (const gxp::Error& error) {
    if (error.kind() == gxp::ErrorKind::kInternal) std::abort();
  }
  return 0;
}
