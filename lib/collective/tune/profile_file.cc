// The text of a profile (profile.h).
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/hash.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/near_match.h"
#include "lib/base/text_file.h"
#include "lib/collective/tune/profile.h"
#include "lib/collective/tune/shared_methods.h"
#include "lib/config/toml_reader.h"

namespace gxp {
namespace {

constexpr int64_t kVersion = 2;
constexpr std::string_view kMachineSection = "machine";
constexpr std::array<std::string_view, 7> kMessageCurves = {
    "start", "hop", "swap", "exchange", "fold", "fold-later", "copy"};
constexpr int kMostRanks = 1 << 20;
constexpr size_t kMaxFileBytes = 4u << 20;  // the built-in one has 25 kB

std::vector<std::string> curve_names() {
  std::vector<std::string> names(kMessageCurves.begin(), kMessageCurves.end());
  for (const MemoryOrigin origin : kMemoryOrigins) {
    for (const Collective collective : collectives()) {
      names.push_back(shared_curve_name(collective, origin));
    }
  }
  for (const SharedMethod method :
       {SharedMethod::kCopied, SharedMethod::kPlaced, SharedMethod::kCma, SharedMethod::kTiles}) {
    for (const Collective collective : collectives())
      names.push_back(method_curve_name(method, collective));
  }
  for (const Algorithm& algorithm : algorithms()) names.push_back(message_curve_name(algorithm));
  return names;
}

// Also the order in the file. A bare key of TOML has no '+'.
std::string section_name(const LinkClass& link) {
  std::string name = link.hosts > 1 ? fmt::format("{}-{}-hosts", link.transport, link.hosts)
                                    : fmt::format("{}-{}", link.transport, link.ranks);
  std::ranges::replace(name, '+', '-');
  return name;
}

// Where a reader is, for its errors.
struct ProfileEntry {
  std::string_view origin;
  const TomlEntry& entry;
};

template <class... Args>
[[noreturn]] void reject(const ProfileEntry& at, fmt::format_string<Args...> format,
                         Args&&... args) {
  fail(ErrorKind::kCorrupt, "read profile {}: line {}: {}.{}: {}", at.origin, at.entry.line,
       at.entry.section, at.entry.key, fmt::format(format, std::forward<Args>(args)...));
}

template <class T>
const T& get(const ProfileEntry& at, std::string_view wanted) {
  const T* value = at.entry.value ? std::get_if<T>(&*at.entry.value) : nullptr;
  if (value == nullptr) reject(at, "must be {}", wanted);
  return *value;
}

int get_count(const ProfileEntry& at) {
  const auto value = get<int64_t>(at, "a count");
  if (value < 1 || value > kMostRanks) reject(at, "{} is not between 1 and {}", value, kMostRanks);
  return int(value);
}

const char* read_number(const char* begin, const char* end, double& number) {
  const auto [next, error] = std::from_chars(begin, end, number);
  return error == std::errc() && std::isfinite(number) && number > 0 ? next : nullptr;
}

CostCurve::Point to_point(const ProfileEntry& at, const std::string& text) {
  CostCurve::Point point;
  const char* const end = text.data() + text.size();
  const char* next = read_number(text.data(), end, point.bytes);
  if (next != nullptr && next != end && *next == ' ') {
    next = read_number(next + 1, end, point.seconds);
    if (next == end) return point;
  }
  reject(at, "'{}' is not 'BYTES SECONDS', both above 0", text);
}

CostCurve to_curve(const ProfileEntry& at) {
  CostCurve curve;
  for (const std::string& text : get<std::vector<std::string>>(at, "a list of 'BYTES SECONDS'")) {
    const CostCurve::Point point = to_point(at, text);
    if (!curve.points.empty()) {
      const CostCurve::Point& last = curve.points.back();
      if (point.bytes <= last.bytes) reject(at, "the bytes of '{}' do not ascend", text);
      if (point.seconds < last.seconds) reject(at, "the seconds of '{}' fall", text);
    }
    curve.points.push_back(point);
  }
  if (curve.points.empty()) reject(at, "the list is empty");
  return curve;
}

void read_machine(const ProfileEntry& at, Machine& machine, bool& has_version) {
  if (at.entry.key == "version") {
    const auto version = get<int64_t>(at, "a number");
    if (version != kVersion) {
      reject(at, "{} is not {}; calibrate again with this gxp", version, kVersion);
    }
    has_version = true;
  } else if (at.entry.key == "cpu") {
    machine.cpu = get<std::string>(at, "a text");
  } else if (at.entry.key == "cores") {
    machine.cores = get_count(at);
  } else if (at.entry.key == "linux") {
    machine.linux_release = get<std::string>(at, "a text");
  } else {
    reject(at, "there is no such key");
  }
}

void read_link(const ProfileEntry& at, LinkClass& link, std::span<const std::string> names) {
  const std::string& key = at.entry.key;
  if (key == "transport") {
    link.transport = get<std::string>(at, "a text");
  } else if (key == "ranks") {
    link.ranks = get_count(at);
  } else if (key == "hosts") {
    link.hosts = get_count(at);
  } else if (std::ranges::find(names, key) != names.end()) {
    link.curves[key] = to_curve(at);
  } else {
    reject(at, "there is no such key{}", did_you_mean(key, names));
  }
}

void check_link(std::string_view origin, const TomlSection& section, const LinkClass& link) {
  const auto lacks = [&](std::string_view what) {
    fail(ErrorKind::kCorrupt, "read profile {}: line {}: [{}] has no {}", origin, section.line,
         section.name, what);
  };
  if (link.transport.empty()) lacks("transport");
  if (link.hosts > 1 && link.curve("exchange") == nullptr) lacks("exchange");
  for (const std::string_view name : kMessageCurves) {
    if (link.hosts == 1 && link.curve(name) == nullptr) lacks(name);
  }
}

}  // namespace

std::string to_toml(const Profile& profile) {
  std::string text = fmt::format(
      "# Costs of this machine's links, for gxp; measured by gxp allreduce-test --calibrate.\n"
      "[{}]\nversion = {}\ncpu = {}\ncores = {}\nlinux = {}\n",
      kMachineSection, kVersion, to_toml(Value(profile.machine.cpu)), profile.machine.cores,
      to_toml(Value(profile.machine.linux_release)));
  std::vector<LinkClass> links = profile.links;
  std::ranges::sort(links, {}, section_name);
  for (const LinkClass& link : links) {
    text += fmt::format("\n[{}]\ntransport = {}\nranks = {}\nhosts = {}\n", section_name(link),
                        to_toml(Value(link.transport)), link.ranks, link.hosts);
    for (const auto& [name, curve] : link.curves) {
      std::vector<std::string> points;
      for (const auto& [bytes, seconds] : curve.points) {
        points.push_back(fmt::format("\"{} {}\"", bytes, seconds));
      }
      text += fmt::format("{} = [{}]\n", name, joined(points, ", "));
    }
  }
  return text;
}

Profile parse_profile(std::string_view text, std::string_view origin) {
  const TomlDocument document = parse_toml(text);
  if (!document.syntax_error.empty()) {
    fail(ErrorKind::kCorrupt, "read profile {}: line {}: {}", origin, document.syntax_error_line,
         document.syntax_error);
  }
  Profile profile;
  bool has_version = false;
  for (const TomlEntry& entry : document.entries) {
    const ProfileEntry at{origin, entry};
    if (entry.section.empty()) reject(at, "comes before the first section");
    if (entry.section == kMachineSection) read_machine(at, profile.machine, has_version);
  }
  if (!has_version) fail(ErrorKind::kCorrupt, "read profile {}: no machine.version", origin);
  const std::vector<std::string> names = curve_names();
  for (const TomlSection& section : document.sections) {
    if (section.name == kMachineSection) continue;
    LinkClass link;
    for (const TomlEntry& entry : document.entries) {
      if (entry.section == section.name) read_link({origin, entry}, link, names);
    }
    check_link(origin, section, link);
    profile.links.push_back(std::move(link));
  }
  return profile;
}

uint64_t hash_of(const Profile& profile) {
  const std::string text = to_toml(profile);
  return hash64(std::as_bytes(std::span(text)));
}

Profile load_profile(const std::string& path) {
  try {
    return parse_profile(read_text_file(path, kMaxFileBytes, "profile"), path);
  } catch (const Error& error) {
    if (::access(path.c_str(), F_OK) == 0) throw;
    fail(ErrorKind::kIo, "{}; make one with gxp allreduce-test --calibrate", error.what());
  }
}

void save_profile(const Profile& profile, const std::string& path) {
  namespace fs = std::filesystem;
  const std::string act = fmt::format("write profile {}", path);
  const std::string directory = fs::path(path).parent_path().string();
  std::error_code error;
  if (!directory.empty()) fs::create_directories(directory, error);
  if (error) fail(ErrorKind::kIo, "{}: {}", act, error.message());
  std::string partial = path + ".XXXXXX";
  const Fd fd(int(check_sys(::mkstemp(partial.data()), act)));
  const std::string text = to_toml(profile);
  const bool written = ::write(fd.get(), text.data(), text.size()) == ssize_t(text.size()) &&
                       ::fchmod(fd.get(), 0644) == 0 && ::fsync(fd.get()) == 0 &&
                       ::rename(partial.c_str(), path.c_str()) == 0;
  if (written) return;
  const int cause = errno;
  ::unlink(partial.c_str());
  fail(ErrorKind::kIo, "{}: {}", act, system_text(cause));
}

}  // namespace gxp
