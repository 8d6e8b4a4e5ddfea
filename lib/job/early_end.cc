#include "lib/job/early_end.h"

#include <chrono>
#include <optional>
#include <stop_token>

#include "lib/base/error.h"
#include "lib/net/launch/absence_report.h"
#include "lib/net/launch/rank_program.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

// Of the rank for which this process may speak; nothing: of none.
std::optional<Environment> speaks_for(const LaunchRequest& request,
                                      const Environment& environment) {
  const RankIdentity identity = identity_for(request, environment);
  if (identity.launcher == LauncherKind::kGxp) return {};  // its launcher does
  if (!request.starts_ranks()) {
    const bool waited_for = identity.rank > 0 && identity.exchange == Exchange::kNone;
    return waited_for ? std::optional(environment) : std::nullopt;
  }
  if (request.node_rank == 0 || request.max_restarts > 0) return {};
  const LaunchOptions options = placed_ranks(request);
  const Attempt attempt{.point = open_rendezvous(options, environment), .job = ""};
  return rank_program(options, environment, attempt, 0, {}).environment;
}

}  // namespace

int telling_others(const LaunchRequest& request, const Environment& environment,
                   const std::function<int()>& work) {
  try {
    return work();
  } catch (const Error& error) {
    std::optional<Environment> rank;
    try {
      rank = speaks_for(request, environment);
    } catch (const std::exception&) {
      // The error may be that nobody knows who this is.
    }
    std::stop_source now;
    now.request_stop();
    if (rank) report_absence(*rank, error.what(), 500ms, now.get_token());
    throw;
  }
}

}  // namespace gxp
