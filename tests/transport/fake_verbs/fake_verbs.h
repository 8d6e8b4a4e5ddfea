// A library that stands for libibverbs.so.1: RDMA devices whose network is this process, with
// mishaps on demand. Tests find it by their RPATH; with the system's library in LD_PRELOAD the same
// tests run over that and its devices.
//   Threads  any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace gxp {

// What the fake is to do. Its state is the process's; reset() between tests.
class FakeVerbs {
 public:
  virtual ~FakeVerbs() = default;
  // Two active RoCE devices, fake0 and fake1, that do what they are asked to at once.
  virtual void reset() = 0;

  // What there is: set before ranks look.
  virtual void set_devices(int count) = 0;
  virtual void set_infiniband(bool on) = 0;
  virtual void set_open_error(int error_number) = 0;
  virtual void set_max_queue_entries(int count) = 0;
  // Registering more than this at a time, or all together, fails with ENOMEM.
  virtual void set_lockable_bytes(size_t bytes) = 0;
  // Whether devices register what other drivers have exported.
  virtual void set_dma_buf(bool on) = 0;

  // A function of the library, as "ibv_create_qp", or "post_send", "post_write", "post_recv",
  // "poll_cq", "req_notify_cq", fails on the device with this errno's number: the call after
  // `after` others, and all later ones.
  virtual void fail_calls(std::string_view function, int device, int error_number,
                          int after = 0) = 0;

  // Requests of different queue pairs are carried out in a random order, by a thread and
  // by those who poll.
  virtual void shuffle(bool on) = 0;
  // The request number `after` from now on, a write or a send, ends with this ibv_wc_status.
  virtual void fail_request(int after, int status) = 0;
  // The status of all requests between different queue pairs from now on; 0: they succeed.
  virtual void cut(int status) = 0;
  // Changes what arrives of each send from now on, in the receiver's memory; returns how many of
  // its bytes do arrive.
  using Corruption = std::function<size_t(std::span<std::byte> message)>;
  virtual void corrupt_sends(Corruption change) = 0;
  // These bits of the numbers that writes tell at their ends arrive turned over.
  virtual void corrupt_numbers(uint32_t bits) = 0;
  // All receives that are posted now are lost.
  virtual void lose_receives() = 0;
  // After `after` more of its requests, and when the next one to it comes, it is as if the device's
  // host had lost its power: requests to it find nobody, its own are never carried out. Before a
  // request has come to it nobody could see that.
  virtual void vanish(int device, int after) = 0;
  // Holds all requests of a device back until the port is up again, and tells the event.
  virtual void set_port(int device, bool up) = 0;
  // Tells an asynchronous event (ibv_event_type) to all who have the device open.
  virtual void tell_event(int device, int type, int port = 1) = 0;

  [[nodiscard]] virtual size_t registered_regions() const = 0;
  // Of these, those that may be written in any order.
  [[nodiscard]] virtual size_t relaxed_regions() const = 0;
  [[nodiscard]] virtual uint64_t bytes_written(int device) const = 0;
  // Reads that were carried out. What is written into GPU memory is there once the device that has
  // written it reads.
  [[nodiscard]] virtual int flush_reads() const = 0;
  // Requests that found no receive posted.
  [[nodiscard]] virtual int not_ready() const = 0;
};

// Null where the system's library is loaded instead, or none can be.
FakeVerbs* fake_verbs();

}  // namespace gxp
