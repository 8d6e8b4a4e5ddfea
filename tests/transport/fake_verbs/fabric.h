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
#include <thread>
#include <vector>

#include "tests/transport/fake_verbs/fake_verbs.h"

namespace gxp {

inline constexpr int kMaxFakeDevices = 4;

struct FakeContext {
  ibv_context context{};  // first: this is what users hold
  int device = 0;
  std::deque<ibv_event_type> events;
};

struct FakeChannel {
  ibv_comp_channel channel{};
  std::deque<ibv_cq*> events;
};

struct FakeQueue {
  ibv_cq cq{};
  std::deque<ibv_wc> completions;
  FakeChannel* channel = nullptr;
  bool armed = false;
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
  size_t uncounted = 0;              // requests and completions that nobody has polled
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
  void shuffle(bool on) override;
  void fail_request(int after, int status) override;
  void cut(int status) override {
    change([&] { cut_status = status; });
  }
  void set_port(int device, bool up) override;
  void tell_event(int device, int type) override;
  size_t registered_regions() const override;
  uint64_t bytes_written(int device) const override;
  int not_ready() const override;

  // The mutex is held for all of these.
  void carry_out_all();
  bool carry_out_one();
  void complete(FakePair& pair, ibv_cq* queue, ibv_wc completion);
  void break_pair(FakePair& pair);

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
  std::array<uint64_t, kMaxFakeDevices> written{};
  uint32_t next_number = 100;
  std::map<uint32_t, FakePair*> pairs;  // by number
  std::map<uint32_t, ibv_mr*> regions;  // by key
  std::set<FakeContext*> contexts;

 private:
  template <class Change>
  void change(const Change& act) {
    const std::lock_guard lock(mutex);
    act();
  }
  ibv_wc_status carry_out(FakePair& pair, const FakeRequest& request);
  std::optional<ibv_wc_status> injected();
  ibv_wc_status take_receive(FakePair& from, FakePair& to, const FakeRequest& request);

  std::mt19937 random_{1};
  std::jthread worker_;
};

}  // namespace gxp
