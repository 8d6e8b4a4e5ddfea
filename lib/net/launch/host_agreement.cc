#include "lib/net/launch/host_agreement.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "lib/base/error.h"
#include "lib/net/identity/identity.h"
#include "lib/net/launch/rank_program.h"
#include "lib/net/store/facts.h"
#include "lib/net/store/store_server.h"

namespace gxp {
namespace {

bool is_new(const HostReport& report) { return report.job.empty(); }

HostDecision end_with(std::string text) {
  return {.starts = false, .job = "", .text = std::move(text)};
}

// Why the launchers cannot work together; "": they can.
std::string contradiction(std::span<const HostReport> reports) {
  std::string job;
  for (size_t host = 0; host < reports.size(); ++host) {
    if (reports[host].max_restarts != reports[0].max_restarts)
      return fmt::format(
          "--max-restarts is {} on host 0 and {} on host {}; give all hosts the same",
          reports[0].max_restarts, reports[host].max_restarts, host);
    if (is_new(reports[host])) continue;
    if (!job.empty() && reports[host].job != job)
      return fmt::format("host {} is in another job; give each job a --master port of its own",
                         host);
    job = reports[host].job;
  }
  return "";
}

// "rank 3 was killed by signal 9 (SIGKILL) in step 7": of the gravest failure, the first of several.
std::string describe_failure(std::span<const HostReport> reports) {
  const auto lost = std::ranges::find_if(reports, is_new);
  const auto killed = std::ranges::find_if(reports, &HostReport::was_killed);
  const auto failed = std::ranges::find_if(reports, &HostReport::may_restart);
  const int64_t step = reports[0].step;
  const std::string where = is_new(reports[0]) ? ""
                            : step > 0         ? fmt::format(" in step {}", step)
                                               : " before its first step";
  if (lost != reports.end())
    return fmt::format("host {} was lost{}", lost - reports.begin(), where);
  const auto& worst = killed != reports.end() ? *killed : *failed;
  return worst.failure + where;
}

std::string describe_start(const HostReport& report) {
  if (is_new(report)) return "continuing from its newest checkpoint, if there is one";
  if (report.saved > 0)
    return fmt::format("continuing from the checkpoint of step {}", report.saved);
  return report.owns_directories ? "starting anew, without a checkpoint" : "starting as at first";
}

HostDecision meet(const LaunchOptions& options, const Secret& secret, const HostReport& mine,
                  const std::function<HostDecision(std::span<const HostReport>)>& decide,
                  Deadline deadline) {
  Endpoint point = options.master;
  std::unique_ptr<StoreServer> server;
  if (options.host_index == 0) {
    point.host = listening_host(options);
    server = std::make_unique<StoreServer>(listen_tcp(point), options.host_count, secret);
  }
  Store store(point, options.host_index, options.host_count, secret, deadline);
  const std::vector<HostReport> reports = exchange_facts(mine, store, "hosts", deadline);
  const auto decision = unpack_fact<HostDecision>(store.from_rank_0(
      "decision", [&] { return pack_fact(decide(reports)); }, deadline));
  store.close();
  if (server) server->wait_goodbyes(deadline);
  return decision;
}

}  // namespace

HostDecision decide(std::span<const HostReport> reports, RestartPolicy& policy,
                    const std::string& new_job) {
  if (const std::string why = contradiction(reports); !why.empty()) return end_with(why);
  if (std::ranges::all_of(reports, is_new)) return {.starts = true, .job = new_job, .text = ""};
  const bool any_ends = std::ranges::any_of(reports, [](const HostReport& report) {
    return !is_new(report) && !report.succeeded && !report.may_restart;
  });
  if (any_ends || std::ranges::all_of(reports, &HostReport::succeeded)) return end_with("");
  const auto last = std::ranges::max_element(
      reports, {}, [](const HostReport& report) { return is_new(report) ? -1 : report.attempt; });
  policy.set_count(last->attempt);
  const HostReport& first = reports[0];
  const bool from_outside = std::ranges::any_of(
      reports, [](const HostReport& report) { return is_new(report) || report.from_outside; });
  if (const auto refusal = policy.refuse({first.step, first.saved, from_outside}))
    return end_with("no restart: " + *refusal);
  return {.starts = true,
          .job = last->job,
          .attempt = policy.count(),
          .text = fmt::format("restart {} of {}: {}; {}", policy.count(), policy.most(),
                              describe_failure(reports), describe_start(first))};
}

HostDecision agree(const LaunchOptions& options, const Environment& environment,
                   const HostReport& mine,
                   const std::function<HostDecision(std::span<const HostReport>)>& decide,
                   Deadline deadline) {
  constexpr std::chrono::milliseconds kPause{200};  // between two tries
  const Secret secret =
      open_rendezvous(options, environment).secret.for_job("launchers " + options.master.host);
  for (;;) {  // ends: soon after the deadline, at which meet() fails
    try {
      return meet(options, secret, mine, decide, deadline);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kPeer) throw;
      if (deadline.expired())
        fail(ErrorKind::kPeer,
             "meet the launchers of the other hosts: {} (here, rank N is the launcher of host N); "
             "run the same command there",
             error.what());
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace gxp
