#include "lib/net/launch/host_agreement.h"

#include <algorithm>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/net/identity/identity.h"
#include "lib/net/launch/rank_program.h"
#include "lib/net/store/facts.h"
#include "lib/net/store/store_server.h"

namespace gxp {
namespace {

bool is_new(const HostReport& report) { return report.job.empty(); }

HostDecision end_with(std::string text, bool failed = true) {
  return {.starts = false, .failed = failed, .text = std::move(text)};
}

// A host that came too late for the newest attempt has had no ranks in it: what it tells of an
// earlier one explains nothing.
std::vector<HostReport> of_newest_attempt(std::span<const HostReport> reports) {
  std::vector<HostReport> of_newest(reports.begin(), reports.end());
  const int newest = std::ranges::max_element(of_newest, {}, &HostReport::attempt)->attempt;
  for (HostReport& report : of_newest)
    if (report.attempt < newest)
      report = {.host = report.host, .max_restarts = report.max_restarts};
  return of_newest;
}

// Why the launchers cannot work together; "": they can.
std::string contradiction(std::span<const HostReport> reports) {
  std::string job;
  for (const HostReport& report : reports) {
    if (report.max_restarts != reports[0].max_restarts)
      return fmt::format(
          "--max-restarts is {} on host 0 and {} on host {}; give all hosts the same",
          reports[0].max_restarts, report.max_restarts, report.host);
    if (is_new(report)) continue;
    if (!job.empty() && report.job != job)
      return fmt::format("host {} is in another job; give each job a --master port of its own",
                         report.host);
    job = report.job;
  }
  return "";
}

// Who has taken part and is not there any more, or has been started anew. A new host 0 does not
// know who has taken part.
std::vector<int> lost_hosts(std::span<const HostReport> reports, const HostRules& rules) {
  std::vector<int> lost = rules.last;
  std::erase_if(lost, [&](int host) {
    const auto found = std::ranges::find(reports, host, &HostReport::host);
    return found != reports.end() && !is_new(*found);
  });
  if (is_new(reports[0])) lost.insert(lost.begin(), 0);
  return lost;
}

// "rank 3 was killed by signal 9 (SIGKILL) in step 7": of the gravest failure, the first of several.
std::string describe_failure(std::span<const HostReport> reports, std::span<const int> lost) {
  const auto killed = std::ranges::find_if(reports, &HostReport::was_killed);
  const auto failed = std::ranges::find_if(reports, &HostReport::may_restart);
  const int64_t step = reports[0].step;
  const std::string where = is_new(reports[0]) ? ""
                            : step > 0         ? fmt::format(" in step {}", step)
                                               : " before its first step";
  if (!lost.empty()) return fmt::format("host {} was lost{}", lost.front(), where);
  const auto& worst = killed != reports.end() ? *killed : *failed;
  return worst.failure + where;
}

std::string describe_start(const HostReport& report) {
  if (is_new(report)) return "continuing from its newest checkpoint, if there is one";
  if (report.replicated > report.saved)
    return fmt::format("continuing from replicas of step {} or before", report.replicated);
  if (report.saved > 0)
    return fmt::format("continuing from the checkpoint of step {}", report.saved);
  return report.owns_directories ? "starting anew, without a checkpoint" : "starting as at first";
}

std::string name_hosts(const HostDecision& decision, size_t most) {
  const bool all = decision.hosts.size() == most;
  return all ? "" : fmt::format(", on hosts {}", joined(decision.hosts, ", "));
}

std::vector<int> numbers_of(std::span<const HostReport> reports) {
  std::vector<int> numbers;
  for (const HostReport& report : reports) numbers.push_back(report.host);
  return numbers;
}

// Whether somebody has failed for good, or was asked to stop.
bool any_ends(std::span<const HostReport> reports) {
  return std::ranges::any_of(reports, [&](const HostReport& report) {
    const bool goes_on =
        report.succeeded || report.may_restart || (reports[0].has_paused && report.paused);
    return !is_new(report) && !goes_on;
  });
}

constexpr std::string_view kToGive = "to give";  // the store's key

std::vector<HostHoldings> holdings_of(std::span<const HostReport> reports,
                                      const HostDecision& decision) {
  std::vector<HostHoldings> all;
  for (const HostReport& report : reports) {
    const bool takes_part =
        std::ranges::find(decision.hosts, std::to_string(report.host)) != decision.hosts.end();
    all.push_back({report.host, takes_part});
    for (const std::string& part : report.held)
      all.back().parts.push_back(unpack_fact<HeldPart>(part));
  }
  return all;
}

bool all_succeeded(std::span<const HostReport> reports, const HostRules& rules) {
  return lost_hosts(reports, rules).empty() &&
         std::ranges::all_of(
             reports, [](const HostReport& report) { return is_new(report) || report.succeeded; });
}

}  // namespace

std::vector<int> choose_hosts(std::span<const int> here, const HostRules& rules) {
  for (size_t count = here.size(); count > 0 && int(count) >= rules.least; --count)
    if (rules.accepts(int(count))) return {here.begin(), here.begin() + ptrdiff_t(count)};
  return {};
}

HostDecision decide(std::span<const HostReport> all, RestartPolicy& policy,
                    const std::string& new_job, const HostRules& rules) {
  if (const std::string why = contradiction(all); !why.empty()) return end_with(why);
  const std::vector<HostReport> reports = of_newest_attempt(all);
  const bool first = std::ranges::all_of(reports, is_new);
  if (!first && any_ends(reports)) return end_with("");
  if (!first && all_succeeded(reports, rules)) return end_with("", false);
  HostDecision decision{.starts = true, .job = new_job};
  for (const int host : choose_hosts(numbers_of(reports), rules))
    decision.hosts.push_back(std::to_string(host));
  if (decision.hosts.empty())
    return end_with(
        fmt::format("no {}start: {} hosts are too few, or no number that the ranks can "
                    "share the work among",
                    first ? "" : "re", reports.size()));
  if (first) return decision;
  const auto last = std::ranges::max_element(
      reports, {}, [](const HostReport& report) { return is_new(report) ? -1 : report.attempt; });
  const std::vector<int> lost = lost_hosts(reports, rules);
  const bool grows = lost.empty() && std::ranges::all_of(reports, [](const HostReport& report) {
                       return is_new(report) || report.paused || report.succeeded;
                     });
  const HostReport& leader = reports[0];
  policy.set_count(last->restarts);
  const bool from_outside =
      !lost.empty() || std::ranges::any_of(reports, &HostReport::from_outside);
  const auto refusal =
      grows ? std::nullopt
            : policy.refuse({leader.step, std::max(leader.saved, leader.replicated), from_outside});
  if (refusal) return end_with("no restart: " + *refusal);
  decision.job = last->job;
  decision.attempt = last->attempt + 1;
  decision.restarts = policy.count();
  std::vector<int> known = numbers_of(reports);  // some of them lost, and back already
  std::ranges::copy_if(lost, std::back_inserter(known),
                       [&](int host) { return std::ranges::find(known, host) == known.end(); });
  const std::string how = describe_start(leader) + name_hosts(decision, known.size());
  decision.text = grows ? fmt::format("another host has come; {}", how)
                        : fmt::format("restart {} of {}: {}; {}", policy.count(), policy.most(),
                                      describe_failure(reports, lost), how);
  return decision;
}

HostMeetings::HostMeetings(const LaunchOptions& options, const Environment& environment,
                           std::string memory)
    : options_(options),
      memory_(std::move(memory)),
      secret_(open_rendezvous(options, environment)
                  .secret.for_job("launchers " + options.master.host)) {}

void HostMeetings::open() {
  if (options_.host_index != 0 || (server_ && !server_->has_failed())) return;
  server_.reset();  // somebody who waited is gone; the others come again
  const Endpoint point{listening_host(options_), options_.master.port};
  server_ = std::make_unique<StoreServer>(listen_tcp(point), options_.host_count, secret_);
}

std::vector<int> HostMeetings::waiting() const {
  return server_ ? server_->members() : std::vector<int>{};
}

HostDecision HostMeetings::agree(const HostReport& mine, std::span<const int> expected,
                                 const Decide& decide, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPause{200};  // between two tries
  Deadline deadline = Deadline::after(patience);
  int losses = 0;
  for (;;) {  // ends: soon after the deadline, if nobody leads the meeting or too few come to it
    bool met = false;
    try {
      return options_.host_index == 0 ? lead(mine, expected, decide, deadline)
                                      : follow(mine, deadline, met);
    } catch (const Error& error) {
      const bool lost_somebody = server_ && server_->has_failed() && losses++ < options_.host_count;
      server_.reset();
      // It may have waited for long, or for one that has come and was lost meanwhile.
      if (met || lost_somebody) deadline = Deadline::after(patience);
      if (error.kind() != ErrorKind::kPeer) throw;
      if (deadline.expired())
        fail(ErrorKind::kPeer,
             "meet the launchers of the other hosts: {} (here, rank N is the launcher of host N); "
             "run the same command there, unless the job has ended",
             error.what());
    }
    std::this_thread::sleep_for(kPause);
  }
}

HostDecision HostMeetings::lead(const HostReport& mine, std::span<const int> expected,
                                const Decide& decide, Deadline deadline) {
  constexpr std::chrono::milliseconds kHere{500};       // for what only has to be read
  constexpr std::chrono::milliseconds kBack{1000};      // for who has waited since the last meeting
  constexpr std::chrono::milliseconds kGoodbyes{2000};  // at least, for all who are there to know
  open();
  Store store({listening_host(options_), options_.master.port}, 0, options_.host_count, secret_,
              deadline);
  std::map<int, HostReport> reports = {{0, mine}};
  const auto take = [&](int host, Deadline until) {
    if (reports.contains(host)) return;
    const auto report = store.find(fmt::format("host {}", host), until);
    if (report) reports[host] = unpack_fact<HostReport>(*report);
  };
  for (const int host : expected) take(host, deadline);
  const Deadline back = Deadline::after(kBack);
  for (const int host : spares_) take(host, back);
  for (const int host : server_->members()) take(host, Deadline::after(kHere));
  if (int(reports.size()) < options_.least_hosts())
    fail(ErrorKind::kPeer, "{} of {} hosts have come within {:.3g} s", reports.size(),
         options_.least_hosts(), deadline.seconds());
  std::vector<HostReport> in_order;
  for (auto& [_, report] : reports) in_order.push_back(std::move(report));
  HostDecision decision = decide(in_order);
  const std::vector<HostHoldings> hosts = holdings_of(in_order, decision);
  spares_.clear();
  for (const HostHoldings& host : hosts)
    if (!host.takes_part) spares_.push_back(host.host);
  decision.text += take_parts(
      store, decision.starts ? files_to_give(hosts, mine.saved) : std::vector<FilesToGive>{});
  store.set("decision", pack_fact(decision));
  store.close();
  const Deadline least = Deadline::after(kGoodbyes);
  server_->wait_goodbyes(int(in_order.size()), deadline.is_before(least) ? least : deadline);
  server_.reset();
  return decision;
}

HostDecision HostMeetings::follow(const HostReport& mine, Deadline deadline, bool& met) const {
  constexpr std::chrono::hours kAttempt{24 * 365};  // the store knows when host 0 is lost
  Store store(options_.master, options_.host_index, options_.host_count, secret_, deadline);
  met = true;
  store.set(fmt::format("host {}", options_.host_index), pack_fact(mine));
  give_parts(store, store.get(kToGive, Deadline::after(kAttempt), 0));
  const auto decision =
      unpack_fact<HostDecision>(store.get("decision", Deadline::after(kAttempt), 0));
  store.close();
  return decision;
}

// Tells all hosts what they must give, and takes it. Returns what is to be told of it.
std::string HostMeetings::take_parts(Store& store, std::span<const FilesToGive> to_give) const {
  std::vector<std::string> asked;
  for (const FilesToGive& files : to_give) asked.push_back(pack_fact(files));
  store.set(kToGive, pack_strings(asked));
  std::string told;
  for (const auto& [host, files] : to_give) {
    const std::string error = take_files(store, host, files, memory_);
    told += error.empty()
                ? fmt::format("; host {} waits, and has given its replicas", host)
                : fmt::format("; host {} waits, and its replicas are lost: {}", host, error);
  }
  return told;
}

void HostMeetings::give_parts(Store& store, std::string_view asked) const {
  for (const std::string& packed : unpack_strings(asked)) {
    const auto mine = unpack_fact<FilesToGive>(packed);
    if (mine.host == options_.host_index) give_files(store, mine.host, mine.files, memory_);
  }
}

}  // namespace gxp
