// A device that looks for missing events.
//
// Its streams only queue. When one is synchronised, the works of all streams run in a random order
// that the events allow, chosen by a seed, on the caller's thread; so a program whose result
// depends on luck gives different results for different seeds. In addition, every two accesses
// (Work::accesses) to the same bytes, at least one of them a write, must be ordered: by their
// stream, by events, or by a synchronize() between them. If they are not, synchronize() throws
// kInternal with both works and the bytes, whether or not this seed's order showed any harm.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lib/device/device.h"

namespace gxp {

//   Memory     is the host's.
//   Threads    one for the device and all its streams. It outlives them.
//   Errors     as Stream says. After a race the device is of no further use.
//   Deadlines  are not looked at: nothing waits but the works themselves.
class SimDevice final : public Device {
 public:
  explicit SimDevice(uint64_t seed);
  ~SimDevice() override;
  [[nodiscard]] std::string description() const override;  // "simulated, seed 7"
  [[nodiscard]] std::unique_ptr<Stream> make_stream(std::string_view name) override;
  [[nodiscard]] std::unique_ptr<Event> make_event() override;
  // What race reports call these bytes; a buffer without a name is "buffer N" in order of
  // allocation.
  void name_memory(ConstMemory memory, std::string name);

 protected:
  Memory allocate_raw(size_t bytes) override;
  void free_raw(Memory memory) noexcept override;

 private:
  struct Schedule;
  std::unique_ptr<Schedule> schedule_;
};

}  // namespace gxp
