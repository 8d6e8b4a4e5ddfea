#include "lib/tools/topology/read/slurm_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

constexpr size_t kSlurmTextShown = 40;                 // of a wrong text, in messages
constexpr size_t kMaxNames = 4 * Topology::kMaxHosts;  // of all lists

std::string_view without_comment(std::string_view line) { return line.substr(0, line.find('#')); }

struct Value {
  std::string text{};
  SourceLocation place{};
};

// One switch or block, of one line or several that go on. `sum` is a block of blocks, which only
// scontrol shows.
struct Record {
  Value switch_name{}, block_name{}, switches{}, nodes{}, sum{};
};

// Keys that scontrol also shows, and that say nothing about distances.
constexpr std::array<std::string_view, 4> kPassedOver = {"level", "blockindex", "blocksize",
                                                         "blocksizes"};

class SlurmReader {
 public:
  explicit SlurmReader(const std::string& name) {
    topology_.name = name;
    topology_.source = "Slurm topology.conf";
  }

  Topology read(std::string_view text) {
    Record record;
    int number = 0;
    for (std::string_view line : split(text, '\n')) {
      line = trimmed_end(without_comment(line));
      const bool goes_on = line.ends_with('\\');
      if (goes_on) line.remove_suffix(1);
      read_words(line, ++number, record);
      if (goes_on) continue;
      add(record);
      record = {};
    }
    add(record);
    finish();
    return std::move(topology_);
  }

 private:
  static std::string_view trimmed_end(std::string_view line) {
    return line.substr(0, line.find_last_not_of(" \t\r") + 1);
  }
  [[noreturn]] void fail_at(SourceLocation place, const std::string& why) const {
    fail(ErrorKind::kCorrupt, "read topology {}: {}", at_place(topology_.name, place), why);
  }
  [[noreturn]] void fail_deep(SourceLocation place) const {
    fail_at(place, fmt::format("switches lie in more than {} levels", kMaxSlurmLevels));
  }
  void note(SourceLocation place, const std::string& what) {
    topology_.notes.push_back(fmt::format("{}: {}", at_place(topology_.name, place), what));
  }

  void read_words(std::string_view line, int number, Record& record) {
    for (size_t at = 0; at < line.size();) {
      at = std::min(line.find_first_not_of(" \t\r", at), line.size());
      const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
      if (at == end) return;
      const std::string_view word = line.substr(at, end - at);
      const SourceLocation place{.line = number, .column = int(at) + 1};
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos || equals == 0 || equals + 1 == word.size())
        fail_at(place, fmt::format("\"{}\" is not KEY=VALUE", word.substr(0, kSlurmTextShown)));
      set(word.substr(0, equals), {std::string(word.substr(equals + 1)), place}, record);
      at = end;
    }
  }

  void set(std::string_view key, const Value& value, Record& record) {
    const std::string wanted = lower_case(key);
    Value* field = wanted == "switchname"        ? &record.switch_name
                   : wanted == "blockname"       ? &record.block_name
                   : wanted == "switches"        ? &record.switches
                   : wanted == "nodes"           ? &record.nodes
                   : wanted == "aggregatedblock" ? &record.sum
                                                 : nullptr;
    if (field != nullptr) {
      if (!field->text.empty())
        fail_at(value.place, fmt::format("{} occurs twice", key.substr(0, kSlurmTextShown)));
      *field = value;
    } else if (std::ranges::find(kPassedOver, wanted) != kPassedOver.end() ||
               !noted_.insert(wanted).second) {
      return;
    } else if (wanted == "linkspeed") {
      note(value.place, fmt::format("LinkSpeed={} is ignored, since it has no unit",
                                    value.text.substr(0, kSlurmTextShown)));
    } else {
      note(value.place, fmt::format("{} is unknown; ignored", key.substr(0, kSlurmTextShown)));
    }
  }

  size_t switch_of(const std::string& name, const Value& where) {
    const auto [known, is_new] = switches_.try_emplace(name, topology_.switches.size());
    if (is_new) {
      if (topology_.switches.size() == Topology::kMaxSwitches)
        fail_at(where.place, fmt::format("more than {} switches", Topology::kMaxSwitches));
      topology_.switches.push_back({.name = name});
      places_.push_back(where.place);
    }
    return known->second;
  }

  void put_below(size_t above, const std::string& name, const Value& where) {
    const size_t below = switch_of(name, where);
    NetworkSwitch& one = topology_.switches[below];
    if (one.above != kNoSwitch) {
      return note(where.place, fmt::format("switch {} is already below {}; the first is kept", name,
                                           topology_.switches[one.above].name));
    }
    int levels = 0;
    for (size_t up = above; up != kNoSwitch; up = topology_.switches[up].above) {
      if (up == below) fail_at(where.place, fmt::format("switch {} is below itself", name));
      if (++levels > kMaxSlurmLevels) fail_deep(where.place);
    }
    one.above = above;
  }

  void add(const Record& record) {
    const Value& name = record.switch_name.text.empty() ? record.block_name : record.switch_name;
    if (!record.sum.text.empty()) return;
    if (name.text.empty()) {
      const Value& orphan = record.switches.text.empty() ? record.nodes : record.switches;
      if (!orphan.text.empty())
        fail_at(orphan.place, "neither SwitchName nor BlockName in this line");
      return;
    }
    if (!record.switch_name.text.empty() && !record.block_name.text.empty())
      fail_at(record.block_name.place, "SwitchName and BlockName in one line");
    const size_t index = switch_of(name.text, name);
    if (!defined_.insert(index).second)
      fail_at(name.place, fmt::format("{} occurs twice", name.text));
    topology_.switches[index].is_block = !record.block_name.text.empty();
    if (!record.switches.text.empty()) {
      for (const std::string& below : expand(record.switches))
        put_below(index, below, record.switches);
    }
    if (record.nodes.text.empty()) return;
    for (const std::string& node : expand(record.nodes)) {
      const auto [host, is_new] = hosts_.try_emplace(node, topology_.hosts.size());
      if (is_new && topology_.hosts.size() == Topology::kMaxHosts)
        fail_at(record.nodes.place, fmt::format("more than {} nodes", Topology::kMaxHosts));
      if (is_new) topology_.hosts.push_back({.name = node});
      topology_.hosts[host->second].leaves.push_back(index);
    }
  }

  // "01-18,20": each number with the zeros of the first.
  [[nodiscard]] std::vector<std::string> numbers(const Value& list, std::string_view ranges) const {
    std::vector<std::string> all;
    for (;;) {
      const std::string_view range = ranges.substr(0, ranges.find(','));
      const std::string_view first = range.substr(0, range.find('-'));
      const std::string_view last =
          first.size() == range.size() ? first : range.substr(first.size() + 1);
      const auto low = whole_number<uint32_t>(first), high = whole_number<uint32_t>(last);
      if (first.size() > 9 || !low || !high || *high < *low ||
          *high - *low >= Topology::kMaxHosts) {
        fail_at(list.place, fmt::format("\"[{}]\" is not a range of numbers",
                                        range.substr(0, kSlurmTextShown)));
      }
      for (uint32_t number = *low; number <= *high; ++number)
        all.push_back(fmt::format("{:0{}}", number, first.size()));
      if (all.size() > Topology::kMaxHosts)
        fail_at(list.place, fmt::format("more than {} names", Topology::kMaxHosts));
      if (range.size() == ranges.size()) return all;
      ranges.remove_prefix(range.size() + 1);
    }
  }

  // "rack[1-2]n[01-18]", one name of a list.
  void expand_one(const Value& list, std::string_view name, std::vector<std::string>& names) const {
    std::vector<std::string> stems = {""};
    while (!name.empty()) {
      const size_t open = std::min(name.find('['), name.size());
      std::vector<std::string> endings = {""};
      const std::string_view plain = name.substr(0, open);
      name.remove_prefix(open);
      if (!name.empty()) {
        const size_t close = name.find(']');
        if (close == std::string_view::npos) fail_at(list.place, "'[' without ']'");
        endings = numbers(list, name.substr(1, close - 1));
        name.remove_prefix(close + 1);
      }
      if (stems.size() * endings.size() > Topology::kMaxHosts)
        fail_at(list.place, fmt::format("more than {} names", Topology::kMaxHosts));
      std::vector<std::string> longer;
      for (const std::string& stem : stems) {
        for (const std::string& ending : endings)
          longer.push_back(fmt::format("{}{}{}", stem, plain, ending));
      }
      stems = std::move(longer);
    }
    names.insert(names.end(), stems.begin(), stems.end());
  }

  [[nodiscard]] std::vector<std::string> expand(const Value& list) {
    std::vector<std::string> names;
    std::string_view rest = list.text;
    while (!rest.empty()) {
      size_t end = 0;
      for (bool inside = false; end < rest.size() && (inside || rest[end] != ','); ++end)
        inside = rest[end] == '[' || (inside && rest[end] != ']');
      if (end == 0) fail_at(list.place, "an empty name in a list");
      expand_one(list, rest.substr(0, end), names);
      if (names.size() > Topology::kMaxHosts)
        fail_at(list.place, fmt::format("more than {} names", Topology::kMaxHosts));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    names_ += names.size();
    if (names_ > kMaxNames)
      fail_at(list.place, fmt::format("more than {} names in all", kMaxNames));
    return names;
  }

  void finish() {
    if (topology_.switches.empty()) fail_at({1, 1}, "it names no switch and no block");
    for (size_t i = 0; i < topology_.switches.size(); ++i) {
      int levels = 0;
      for (size_t up = i; up != kNoSwitch; up = topology_.switches[up].above) {
        if (++levels > kMaxSlurmLevels) fail_deep(places_[i]);
      }
      if (!defined_.contains(i))
        topology_.notes.push_back(fmt::format("{}: switch {} has no line of its own",
                                              topology_.name, topology_.switches[i].name));
    }
    keep_nearest_switches();
  }

  // scontrol shows a node at all switches above it; it is joined to the lowest.
  void keep_nearest_switches() {
    std::vector<size_t> above_host(topology_.switches.size(), kNoSwitch);  // the last such host
    for (size_t host = 0; host < topology_.hosts.size(); ++host) {
      std::vector<size_t>& leaves = topology_.hosts[host].leaves;
      for (const size_t leaf : leaves) {
        size_t up = topology_.switches[leaf].above;
        for (; up != kNoSwitch; up = topology_.switches[up].above) above_host[up] = host;
      }
      std::erase_if(leaves, [&](size_t leaf) { return above_host[leaf] == host; });
    }
  }

  Topology topology_;
  std::map<std::string, size_t> switches_;
  std::set<size_t> defined_;
  std::map<std::string, size_t> hosts_;
  std::vector<SourceLocation> places_;  // of switches
  size_t names_ = 0;                    // of all lists
  std::set<std::string> noted_;         // keys, each once
};

}  // namespace

bool looks_like_slurm_topology(std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    line = trimmed(without_comment(line));
    if (line.empty()) continue;
    const std::string key = lower_case(line.substr(0, line.find('=')));
    return key == "switchname" || key == "blockname" || key == "blocksizes";
  }
  return false;
}

Topology read_slurm_topology(std::string_view text, const std::string& name) {
  return SlurmReader(name).read(text);
}

}  // namespace gxp
