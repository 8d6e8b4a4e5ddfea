#include "lib/transport/verbs/verbs_failure.h"

#include <array>
#include <string_view>

namespace gxp {

namespace {

struct Remedy {
  ibv_wc_status status;
  std::string_view act;
  std::string_view text;
};

// InfiniBand Architecture Specification, volume 1, section 10.10.3: what each status means.
constexpr std::array kRemedies{
    Remedy{IBV_WC_RETRY_EXC_ERR, "cannot be reached",
           "is its process running, and the network (cables, switch, PFC, GIDs) intact?"},
    Remedy{IBV_WC_RESP_TIMEOUT_ERR, "cannot be reached",
           "is its process running, and the network intact?"},
    Remedy{IBV_WC_RNR_RETRY_EXC_ERR, "takes nothing",
           "it has no receive posted; this is a bug in gxp"},
    Remedy{IBV_WC_REM_ACCESS_ERR, "refuses a write",
           "its memory is no longer registered: has it ended, or do the ranks run different "
           "programs?"},
    Remedy{IBV_WC_REM_INV_REQ_ERR, "refuses a request", "do the ranks run different programs?"},
    Remedy{IBV_WC_REM_OP_ERR, "failed at a request", "see dmesg on its host"},
    Remedy{IBV_WC_LOC_PROT_ERR, "cannot be sent to",
           "this rank's memory was unmapped while it was sent"},
    Remedy{IBV_WC_LOC_QP_OP_ERR, "cannot be sent to", "see dmesg on this host"},
    Remedy{IBV_WC_FATAL_ERR, "cannot be sent to", "see dmesg on this host"},
    Remedy{IBV_WC_WR_FLUSH_ERR, "has lost its connection",
           "the port or device has dropped it; see dmesg"},
};

}  // namespace

std::string describe_failure(const VerbsFunctions& verbs, const ibv_wc& completion,
                             const std::string& lane) {
  Remedy found{completion.status, "has lost its connection", "see dmesg on both hosts"};
  for (const Remedy& remedy : kRemedies) {
    if (remedy.status == completion.status) found = remedy;
  }
  return fmt::format("{} by RDMA from {}: {} (status {}, vendor {:#x}); {}", found.act, lane,
                     verbs.wc_status_str(completion.status), int(completion.status),
                     completion.vendor_err, found.text);
}

}  // namespace gxp
