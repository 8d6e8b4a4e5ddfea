// The network of the fake: its queue pairs, completion queues and registered memory.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/transport/fake_verbs/fake_verbs.h"

namespace gxp {

inline constexpr int kMaxFakeDevices = 4;
inline constexpr std::array<int, kMaxFakeDevices> kForEver{-1, -1, -1, -1};

struct FakeEvent {
  ibv_event_type type{};
  int port = 1;
};

struct FakeContext {
  ibv_context context{};  // first: this is what users hold
  int device = 0;
  std::deque<FakeEvent> events;
};

struct FakeChannel {
  ibv_comp_channel channel{};
  std::deque<ibv_cq*> events;
};

struct FakeCompletion {
  ibv_wc completion{};
  bool receives = false;
};

struct FakeQueue {
  ibv_cq cq{};
  size_t capacity = 0;
  std::deque<FakeCompletion> completions;
  FakeChannel* channel = nullptr;
  bool armed = false;
};

struct FakeRegion {
  ibv_mr region{};  // first
  int device = 0;
  unsigned access = 0;
  uint64_t first_address = 0;  // as requests name it
  std::byte* bytes = nullptr;  // where the bytes are
  void* mapping = nullptr;     // of a file, for GPU memory; null: host memory
  size_t mapped_bytes = 0;
};

// What a NIC has written into GPU memory that no read has pushed there yet.
struct UnseenWrite {
  int device = 0;
  std::byte* target = nullptr;
  std::vector<std::byte> bytes;
};

struct FakeReceive {
  uint64_t id = 0;
  ibv_sge memory{};
};

struct FakeRequest {
  ibv_send_wr request{};
  ibv_sge memory{};
};

struct FakePair {
  ibv_qp qp{};
  ibv_qp_init_attr wanted{};
  ibv_qp_state state = IBV_QPS_RESET;
  uint32_t peer = 0;
  int device = 0;
  std::deque<FakeReceive> receives;
  std::deque<FakeRequest> requests;  // not carried out yet
  // Entries that are taken: a request's, until somebody has polled its completion.
  size_t sends_out = 0;
  size_t receives_out = 0;
};

class Fabric final : public FakeVerbs {
 public:
  static Fabric& get();
  ~Fabric() override { shuffle(false); }

  void reset() override;
  void set_devices(int count) override {
    change([&] { devices = count; });
  }
  void set_infiniband(bool on) override {
    change([&] { infiniband = on; });
  }
  void set_open_error(int error_number) override {
    change([&] { open_error = error_number; });
  }
  void set_max_queue_entries(int count) override {
    change([&] { max_entries = count; });
  }
  void set_lockable_bytes(size_t bytes) override {
    change([&] { lockable = bytes; });
  }
  void set_dma_buf(bool on) override {
    change([&] { dma_buf = on; });
  }
  void shuffle(bool on) override;
  void fail_request(int after, int status) override;
  void cut(int status) override {
    change([&] { cut_status = status; });
  }
  void fail_calls(std::string_view function, int device, int error_number, int after) override;
  void corrupt_sends(Corruption to) override {
    change([&] { corruption = std::move(to); });
  }
  void corrupt_numbers(uint32_t bits) override {
    change([&] { wrong_bits = bits; });
  }
  void lose_receives() override;
  void vanish(int device, int after) override {
    change([&] { left[size_t(device)] = after; });
  }
  void set_port(int device, bool up) override;
  void tell_event(int device, int type, int port) override;
  size_t registered_regions() const override;
  size_t relaxed_regions() const override;
  int flush_reads() const override {
    const std::lock_guard lock(mutex);
    return flushes;
  }
  uint64_t bytes_written(int device) const override;
  int not_ready() const override;

  // The mutex is held for all of these.
  // errno's number for a call that is to fail, 0 otherwise.
  int refuses(std::string_view function, const ibv_context* context);
  void carry_out_all();
  bool carry_out_one();
  void complete(ibv_cq* queue, const FakeCompletion& done);
  void break_pair(FakePair& pair);
  void raise(FakeContext& context, FakeEvent event);

  mutable std::mutex mutex;  // guards all below
  int devices = 2;
  bool infiniband = false;
  int open_error = 0;
  int max_entries = 1024;
  size_t lockable = SIZE_MAX;
  size_t locked = 0;
  bool shuffles = false;
  std::array<bool, kMaxFakeDevices> up{true, true, true, true};
  int cut_status = 0;
  int fail_after = -1;
  int fail_status = 0;
  int missed_receives = 0;
  std::string failing;  // function
  int failing_device = 0;
  int failing_after = 0;
  int failing_error = 0;
  Corruption corruption;
  uint32_t wrong_bits = 0;
  std::array<int, kMaxFakeDevices> left = kForEver;  // requests of each device; -1: no end
  std::array<bool, kMaxFakeDevices> gone{};          // after them
  std::array<uint64_t, kMaxFakeDevices> written{};
  uint32_t next_number = 100;
  std::map<uint32_t, FakePair*> pairs;      // by number
  std::map<uint32_t, FakeRegion*> regions;  // by key
  std::vector<UnseenWrite> unseen;          // in order
  int flushes = 0;
  bool dma_buf = true;
  std::set<FakeContext*> contexts;

 private:
  template <class Change>
  void change(const Change& act) {
    const std::lock_guard lock(mutex);
    act();
  }
  ibv_wc_status carry_out(FakePair& pair, const FakeRequest& request);
  std::optional<ibv_wc_status> injected();
  // The bytes at an address of a region; null: they are not all of it, or it allows no such access.
  std::byte* find(uint32_t key, uint64_t address, size_t bytes, unsigned access);
  ibv_wc_status write(const FakePair& pair, const FakePair& to, const FakeRequest& request);
  ibv_wc_status read(const FakePair& to, const FakeRequest& request);
  ibv_wc_status take_receive(FakePair& from, FakePair& to, const FakeRequest& request);

  std::mt19937 random_{1};
  std::jthread worker_;
};

}  // namespace gxp
