#include "lib/net/store/configuration.h"

#include <algorithm>
#include <map>
#include <set>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/text/joined.h"
#include "lib/net/store/rank_list.h"

namespace gxp {
namespace {

constexpr size_t kShownKeys = 16;

std::string pack(FlatConfiguration flat) {
  std::sort(flat.begin(), flat.end());
  std::vector<std::string> strings;
  for (auto& [key, value] : flat) {
    strings.push_back(std::move(key));
    strings.push_back(std::move(value));
  }
  return pack_strings(strings);
}

FlatConfiguration unpack(std::string_view packed) {
  const std::vector<std::string> strings = unpack_strings(packed);
  FlatConfiguration flat;
  for (size_t i = 0; i + 1 < strings.size(); i += 2) flat.emplace_back(strings[i], strings[i + 1]);
  return flat;
}

// The values of one key with the ranks that have them, by the first such rank; "" if all agree.
std::string describe_key(const std::string& key,
                         const std::vector<std::map<std::string, std::string>>& by_rank) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const auto found = by_rank[rank].find(key);
    const std::string value = found == by_rank[rank].end() ? "absent" : found->second;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& other) { return other.first == value; });
    if (group == groups.end()) group = groups.insert(group, {value, {}});
    group->second.push_back(int(rank));
  }
  if (groups.size() < 2) return "";
  std::vector<std::string> parts;
  for (const auto& [value, ranks] : groups)
    parts.push_back(fmt::format("{} on {}", value, to_text(ranks)));
  return fmt::format("{}: {}", key, joined(parts, ", "));
}

}  // namespace

std::string configuration_differences(const std::vector<FlatConfiguration>& by_rank) {
  std::set<std::string> keys;
  std::vector<std::map<std::string, std::string>> maps;
  for (const FlatConfiguration& flat : by_rank) {
    const auto& map = maps.emplace_back(flat.begin(), flat.end());
    for (const auto& [key, _] : map) keys.insert(key);
  }
  std::vector<std::string> lines;
  for (const std::string& key : keys) {
    std::string line = describe_key(key, maps);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  const size_t hidden = lines.size() - std::min(lines.size(), kShownKeys);
  lines.resize(lines.size() - hidden);
  if (hidden > 0) lines.push_back(fmt::format("and {} more", hidden));
  return joined(lines, "; ");
}

void check_configuration(const GatherTexts& gather, const FlatConfiguration& mine) {
  const std::string packed = pack(mine);
  const std::string digest = hash_hex(std::as_bytes(std::span(packed)));
  const auto digests = gather("configuration digest", digest);
  if (std::count(digests.begin(), digests.end(), digest) == std::ptrdiff_t(digests.size())) return;
  std::vector<FlatConfiguration> by_rank;
  for (const std::string& text : gather("configuration", packed)) by_rank.push_back(unpack(text));
  fail(ErrorKind::kConfig, "compare the ranks' configurations: {}; give all ranks the same",
       configuration_differences(by_rank));
}

void check_configuration(Store& store, const FlatConfiguration& mine, Deadline deadline) {
  check_configuration([&](std::string_view name,
                          std::string_view text) { return store.gather(name, text, deadline); },
                      mine);
}

}  // namespace gxp
