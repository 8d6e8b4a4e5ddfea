// The offloaded memory of a step program: whole persistent buffers, and the rest of buffers of
// which a part is on the device.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "lib/program/step_program.h"
#include "lib/zero/memory/program_memory.h"
#include "lib/zero/offload/offload_store.h"

namespace gxp {

// For a program without offloaded buffers this is empty, and read() and write() copy memory.
//   Threads   one at a time.
//   Errors    as OffloadStore.
class OffloadedMemory {
 public:
  // `file`: where the program has buffers in a file. `device`, that of `memory`, and `stream`,
  // which fetches and stores run on, outlive this, as `memory` and `program` do.
  OffloadedMemory(const StepProgram& program, const ProgramMemory& memory,
                  const FileStoreOptions& file, Device& device, Stream& stream);

  // Copy elements of a persistent buffer, which may continue in its offloaded rest, to or from the
  // host's memory. Nothing is queued on any stream meanwhile.
  void read(BufferId buffer, const Range& elements, Memory out) {
    copy(buffer, elements, out, false);
  }
  void write(BufferId buffer, const Range& elements, ConstMemory in) {
    copy(buffer, elements, {const_cast<std::byte*>(in.data), in.bytes, in.space}, true);
  }

  // The function that carries out a fetch or a store of `program`, whose device memory is `memory`:
  // this one's program, or another over the same model with the same offloaded parameters. It
  // allocates nothing.
  std::function<void()> bind(const Op& op, const StepProgram& program, const ProgramMemory& memory);

  [[nodiscard]] bool is_empty() const;
  [[nodiscard]] uint64_t bytes(Storage storage) const;
  // "1.5 GiB in host memory; 3 GiB in ..."
  [[nodiscard]] std::string description() const;

 private:
  OffloadStore& store(Storage storage) { return *stores_[size_t(storage)]; }
  void copy(BufferId buffer, const Range& elements, Memory host, bool writes);

  const StepProgram& program_;
  const ProgramMemory& memory_;
  Device& device_;
  Stream& stream_;
  std::array<std::unique_ptr<OffloadStore>, kStorageCount> stores_;
};

}  // namespace gxp
