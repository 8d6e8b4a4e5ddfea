#include "lib/collective/engine/nccl/nccl_memory.h"

#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/collective/engine/nccl/nccl_versions.h"

namespace gxp {

NcclRegistration::NcclRegistration(const NcclLibrary& library,
                                   std::shared_ptr<NcclCommunicator> comm, Memory memory, Kind kind)
    : library_(library), comm_(std::move(comm)), memory_(memory), kind_(kind) {
  const NcclFunctions& nccl = library_.functions();
  comm_->use(fmt::format("register {} with NCCL (NCCL_LOCAL_REGISTER=0 and NCCL_WIN_ENABLE=0 turn "
                         "registration off)",
                         format_bytes(memory.bytes)),
             [&](NcclComm* raw) {
               if (kind_ == Kind::kBuffer)
                 return nccl.register_memory(raw, memory.data, memory.bytes, &handle_);
               return nccl.register_window(raw, memory.data, memory.bytes,
                                           reinterpret_cast<NcclWindow**>(&handle_),
                                           kNcclSymmetricWindow);
             });
}

// An aborted communicator has forgotten it.
NcclRegistration::~NcclRegistration() {
  const NcclFunctions& nccl = library_.functions();
  try {
    comm_->use("deregister memory", [&](NcclComm* raw) {
      if (handle_ == nullptr) return NcclResult::kSuccess;
      return kind_ == Kind::kBuffer
                 ? nccl.deregister_memory(raw, handle_)
                 : nccl.deregister_window(raw, static_cast<NcclWindow*>(handle_));
    });
  } catch (const Error&) {
  }
}

Memory NcclScratch::grow(size_t bytes) {
  if (memory_.bytes >= bytes) return memory_.slice(0, bytes);
  release();
  if (!has(library_.version(), NcclFeature::kRegistration)) {
    buffer_ = device_.allocate(bytes, MemoryKind::kCommunication);
    memory_ = buffer_.memory();
    return memory_;
  }
  void* data = nullptr;
  library_.check(library_.functions().mem_alloc(&data, bytes),
                 fmt::format("allocate {} of the GPU by ncclMemAlloc", format_bytes(bytes)));
  memory_ = {static_cast<std::byte*>(data), bytes, device_.space()};
  device_.tracker().add(MemoryKind::kCommunication, bytes);
  registration_ =
      std::make_unique<NcclRegistration>(library_, comm_, memory_, NcclRegistration::Kind::kBuffer);
  return memory_;
}

void NcclScratch::release() noexcept {
  registration_.reset();
  const Memory old = std::exchange(memory_, {});
  if (old.data != nullptr && buffer_.memory().data == nullptr) {
    device_.tracker().remove(MemoryKind::kCommunication, old.bytes);
    library_.functions().mem_free(old.data);
  }
  buffer_ = {};
}

}  // namespace gxp
