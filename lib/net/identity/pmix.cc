#include "lib/net/identity/pmix.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>

#include "lib/base/error.h"
#include "lib/base/shared_library.h"

namespace gxp {
namespace {

constexpr const char* kPmixKey = "gxp.rank0";

// The library's types, of which versions 2 to 5 agree. A value's union is as large as its largest
// member; what the library writes is read through a pointer of its own.
struct Process {
  std::array<char, 256> name_space{};
  uint32_t rank = 0;
};
struct Value {
  uint16_t type = 0;  // says which member is meant
  union {
    const char* text;
    int number;
    bool flag;
    std::array<uint64_t, 4> room;
  } data = {.room = {}};
};
struct Info {
  std::array<char, 512> key{};
  uint32_t flags = 0;
  Value value;
};
static_assert(sizeof(Process) == 260 && offsetof(Value, data) == 8 && offsetof(Info, value) == 520);
constexpr uint16_t kFlag = 1, kText = 3, kNumber = 6;  // PMIX_BOOL, PMIX_STRING, PMIX_INT
constexpr uint8_t kGlobal = 3;                         // PMIX_GLOBAL, a scope
constexpr int kSuccess = 0;
using Done = void (*)(int status, void* context);

struct Functions {
  int (*init)(Process*, const Info*, size_t) = nullptr;
  int (*finalize)(const Info*, size_t) = nullptr;
  int (*put)(uint8_t scope, const char* key, Value*) = nullptr;
  int (*commit)() = nullptr;
  int (*fence)(const Process*, size_t, const Info*, size_t, Done, void* context) = nullptr;
  int (*get)(const Process*, const char* key, const Info*, size_t, Value**) = nullptr;
  const char* (*error_text)(int) = nullptr;
};

Functions load_functions() {
  const SharedLibrary library("PMIx", "libpmix.so.2");
  Functions functions;
  library.find("PMIx_Init", functions.init);
  library.find("PMIx_Finalize", functions.finalize);
  library.find("PMIx_Put", functions.put);
  library.find("PMIx_Commit", functions.commit);
  library.find("PMIx_Fence_nb", functions.fence);
  library.find("PMIx_Get", functions.get);
  library.find("PMIx_Error_string", functions.error_text);
  return functions;
}

Info make_info(std::string_view key, uint16_t type) {
  Info info;
  std::memcpy(info.key.data(), key.data(), key.size());
  info.value.type = type;
  return info;
}

// Called by a thread of the library, perhaps after the deadline.
void end_fence(int status, void* context) {
  const std::unique_ptr<std::promise<int>> ended(static_cast<std::promise<int>*>(context));
  ended->set_value(status);
}

class PmixClient {
 public:
  explicit PmixClient(Deadline deadline) : functions_(load_functions()), deadline_(deadline) {
    const int status = functions_.init(&self_, nullptr, 0);
    if (status != kSuccess)
      fail(ErrorKind::kUnavailable, "connect to the PMIx server: {}",
           functions_.error_text(status));
  }
  ~PmixClient() { functions_.finalize(nullptr, 0); }
  PmixClient(const PmixClient&) = delete;
  PmixClient& operator=(const PmixClient&) = delete;

  void put(const std::string& text) {
    Value value;
    value.type = kText;
    value.data.text = text.c_str();
    check(functions_.put(kGlobal, kPmixKey, &value), "put rank 0's address");
    check(functions_.commit(), "commit rank 0's address");
  }

  // Waits for all ranks; what they have put is then known on all hosts. Servers of Open MPI 4.1
  // ignore a fence's time limit, so the wait is ours.
  void fence() {
    Info collect = make_info("pmix.collect", kFlag);
    collect.value.data.flag = true;
    auto ended = std::make_unique<std::promise<int>>();
    std::future<int> status = ended->get_future();
    check(functions_.fence(nullptr, 0, &collect, 1, end_fence, ended.get()),
          "reach the other ranks");
    static_cast<void>(ended.release());  // end_fence() owns it now
    while (status.wait_for(deadline_.remaining()) != std::future_status::ready &&
           !deadline_.expired()) {
    }
    if (status.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      fail(ErrorKind::kPeer,
           "reach the other ranks at the PMIx server: not all answered within {:g} s; has one "
           "ended, or do only some have MASTER_ADDR, MASTER_PORT and a job secret set?",
           deadline_.seconds());
    check(status.get(), "reach the other ranks");
  }

  std::string get_of_rank_0() {
    Process rank_0 = self_;
    rank_0.rank = 0;
    Info limit = make_info("pmix.timeout", kNumber);
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(deadline_.remaining());
    limit.value.data.number = int(left.count()) + 1;
    Value* value = nullptr;  // the library's; never freed, as there is but one
    check(functions_.get(&rank_0, kPmixKey, &limit, 1, &value), "get rank 0's address");
    if (value == nullptr || value->type != kText)
      fail(ErrorKind::kPeer, "ask the PMIx server: rank 0's address is not a text");
    return value->data.text;
  }

 private:
  void check(int status, std::string_view act) const {
    if (status != kSuccess)
      fail(ErrorKind::kPeer, "ask the PMIx server to {}: {}", act, functions_.error_text(status));
  }

  Functions functions_;
  Deadline deadline_;
  Process self_;
};

}  // namespace

std::string pass_by_pmix(bool is_rank_0, std::string_view text, Deadline deadline) {
  PmixClient client(deadline);
  if (is_rank_0) client.put(std::string(text));
  client.fence();
  return client.get_of_rank_0();
}

}  // namespace gxp
