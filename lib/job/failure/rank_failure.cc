#include "lib/job/failure/rank_failure.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/json/json.h"
#include "lib/base/text/ascii.h"
#include "lib/base/text/read_number.h"
#include "lib/base/text_file.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSchema = "gxp.failure/1";
constexpr size_t kMostBytes = size_t{4} << 20;
constexpr size_t kMostRanks = 1 << 16;
constexpr size_t kMostFlightBytes = size_t{5} << 20;

constexpr std::array<std::string_view, 23> kShownStarts = {
    "GXP_",           "CUDA_",         "NCCL_",         "OMP_",
    "NVIDIA_VISIBLE", "SLURM_JOB_ID",  "SLURM_PROCID",  "SLURM_N",
    "SLURM_REST",     "SLURM_LOCALID", "TORCHELASTIC_", "OMPI_COMM_WORLD_",
    "PMI_RANK",       "PMI_SIZE",      "PMIX_RANK",     "RANK",
    "LOCAL_RANK",     "WORLD_SIZE",    "MASTER_",       "LD_PRELOAD",
    "LD_LIBRARY",     "MALLOC_",       "JOB_COMPLETION"};
constexpr std::array<std::string_view, 9> kSecretWords = {
    "secret", "token", "key", "pass", "pwd", "credential", "auth", "private", "cookie"};

std::string json_path(const std::string& directory, int rank) {
  return fmt::format("{}/rank-{}.json", directory, rank);
}

// The rank of a file of a failure; nothing for other files.
std::optional<int> rank_of(const fs::path& path) {
  const std::string name = path.filename().string(), start = "rank-";
  const std::string ending = path.extension().string();
  if (!name.starts_with(start) || (ending != ".json" && ending != ".flight")) return std::nullopt;
  const auto rank = read_number<int>(
      std::string_view(name).substr(start.size(), name.size() - start.size() - ending.size()));
  return rank && *rank >= 0 ? rank : std::nullopt;
}

Json to_json(const ThreadStack& stack) {
  Json frames = Json::array();
  for (const StackFrame& frame : stack.frames)
    frames.push_back(
        {{"module", frame.module}, {"offset", frame.offset}, {"symbol", frame.symbol}});
  return {
      {"thread", stack.thread}, {"name", stack.name}, {"state", stack.state}, {"frames", frames}};
}

Json to_json(const RankFailure& failure) {
  Json threads = Json::array();
  for (const ThreadStack& stack : failure.threads) threads.push_back(to_json(stack));
  Json json = {{"schema", kSchema},
               {"rank", failure.rank},
               {"world_size", failure.world_size},
               {"host", failure.host},
               {"process", failure.process},
               {"time", failure.time},
               {"error", failure.error},
               {"step", failure.step},
               {"activity", failure.activity},
               {"metrics", failure.metrics},
               {"build", failure.build},
               {"cpu", failure.cpu},
               {"transport", failure.transport},
               {"environment", failure.environment},
               {"threads", threads}};
  if (failure.verdict)
    json["verdict"] = {{"rank", failure.verdict->rank}, {"reason", failure.verdict->reason}};
  return json;
}

// The members of an object, all of which name the file in errors.
class Members {
 public:
  Members(const Json& object, const std::string& where) : object_(object), where_(where) {
    (void)to_object(object, where);
  }
  [[nodiscard]] std::string text(const char* key) const {
    return to_text(member(object_, key, where_), fmt::format("{}: {}", where_, key));
  }
  [[nodiscard]] uint64_t number(const char* key, uint64_t most = INT64_MAX) const {
    const uint64_t value =
        to_unsigned(member(object_, key, where_), fmt::format("{}: {}", where_, key));
    if (value > most) fail(ErrorKind::kCorrupt, "read {}: {} is {}", where_, key, value);
    return value;
  }
  [[nodiscard]] const Json& list(const char* key) const {
    return to_array(member(object_, key, where_), fmt::format("{}: {}", where_, key));
  }

 private:
  const Json& object_;
  const std::string& where_;
};

ThreadStack read_thread(const Json& json, const std::string& where) {
  const Members members(json, where);
  ThreadStack stack{
      pid_t(members.number("thread", INT32_MAX)), members.text("name"), members.text("state"), {}};
  for (const Json& frame : members.list("frames")) {
    const Members own(frame, where);
    stack.frames.push_back(
        {own.text("module"), own.number("offset", UINT64_MAX), own.text("symbol")});
  }
  return stack;
}

RankFailure read_failure(const std::string& path) {
  const Json json = parse_json(read_text_file(path, kMostBytes, "report of a failure"), path);
  const Members members(json, path);
  if (members.text("schema") != kSchema)
    fail(ErrorKind::kCorrupt, "read {}: it is no report of a failure, or of another version", path);
  RankFailure failure{.rank = int(members.number("rank", kMostRanks)),
                      .world_size = int(members.number("world_size", INT32_MAX))};
  failure.host = members.text("host");
  failure.process = int64_t(members.number("process"));
  failure.time = members.text("time");
  failure.error = members.text("error");
  failure.step = int64_t(members.number("step"));
  failure.activity = members.text("activity");
  failure.metrics = members.text("metrics");
  failure.build = members.text("build");
  failure.cpu = members.text("cpu");
  failure.transport = members.text("transport");
  for (const auto& [name, value] :
       to_object(member(json, "environment", path), path + ": environment").items())
    failure.environment[name] = to_text(value, path + ": environment");
  for (const Json& thread : members.list("threads"))
    failure.threads.push_back(read_thread(thread, path));
  if (!json.contains("verdict")) return failure;
  const Members verdict(json["verdict"], path);
  failure.verdict = FailureVerdict{int(verdict.number("rank", INT32_MAX)), verdict.text("reason")};
  return failure;
}

// The file has its name once it is whole.
void write_private(const std::string& path, std::string_view bytes) {
  const std::string fresh = path + ".partial", act = "write " + path;
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
  const Fd file(int(check_sys(::open(fresh.c_str(), flags, 0600), act)));
  check_sys(::fchmod(file.get(), 0600), act);
  write_fully(file.get(), bytes, act);
  check_sys(std::rename(fresh.c_str(), path.c_str()), act);
}

// What ranks have left in the directory.
std::vector<fs::path> files_of(const std::string& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (rank_of(entry.path())) files.push_back(entry.path());
  return files;
}

void make_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST)
    fail(ErrorKind::kIo, "make directory {}: {}", directory, system_text(errno));
}

}  // namespace

std::map<std::string, std::string> shown_environment(const Environment& environment) {
  std::map<std::string, std::string> shown;
  for (const auto& entry : environment) {
    const std::string& name = entry.first;
    const auto starts = [&](std::string_view start) { return name.starts_with(start); };
    const std::string lower = lower_case(name);
    const auto has = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
    if (std::ranges::any_of(kShownStarts, starts) && std::ranges::none_of(kSecretWords, has))
      shown.insert(entry);
  }
  return shown;
}

std::string failure_directory(const std::string& run) { return run + "/failure"; }

void write_failure(const std::string& directory, const RankFailure& failure) {
  make_directory(directory);
  write_private(flight_record_path(directory, failure.rank), failure.flight);
  write_private(json_path(directory, failure.rank), write_json(to_json(failure)));
}

std::vector<RankFailure> read_failures(const std::string& directory) {
  std::vector<RankFailure> failures;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".json" || !rank_of(entry.path())) continue;
    if (failures.size() == kMostRanks)
      fail(ErrorKind::kCorrupt, "read {}: it has more than {} reports", directory, kMostRanks);
    RankFailure failure = read_failure(entry.path().string());
    if (failure.rank != rank_of(entry.path()))
      fail(ErrorKind::kCorrupt, "read {}: it is of rank {}", entry.path().string(), failure.rank);
    try {
      failure.flight =
          read_text_file(flight_record_path(directory, failure.rank), kMostFlightBytes);
    } catch (const Error&) {
      // The report alone tells much.
    }
    failures.push_back(std::move(failure));
  }
  if (failures.empty())
    fail(ErrorKind::kIo,
         "read the reports of a failure in {}: {}; give the checkpoint.dir of a run that has "
         "failed, or its train.run_dir if it writes no checkpoints",
         directory, error ? error.message() : "there are none");
  std::ranges::sort(failures, {}, &RankFailure::rank);
  return failures;
}

std::optional<FlightRecord> flight_of(const RankFailure& failure) {
  try {
    if (!failure.flight.empty())
      return parse_flight_record(failure.flight, fmt::format("of rank {}", failure.rank));
  } catch (const Error&) {
    // It is shown as if there were none.
  }
  return std::nullopt;
}

bool holds_failure(const std::string& directory) { return !files_of(directory).empty(); }

void put_failure_aside(const std::string& directory) {
  const std::vector<fs::path> files = files_of(directory);
  if (files.empty()) return;
  const std::string old = directory + ".old";
  make_directory(old);
  for (const fs::path& file : files_of(old)) ::unlink(file.c_str());
  for (const fs::path& file : files)
    if (std::rename(file.c_str(), (fs::path(old) / file.filename()).c_str()) != 0)
      fail(ErrorKind::kIo, "put {} of an earlier failure aside into {}: {}", file.string(), old,
           system_text(errno));
  ::rmdir(directory.c_str());  // stays where it holds something else
}

}  // namespace gxp
