// Speeds and widths of PCIe links.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "lib/inspect/check/lint_rules.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

// Of the file, not of the machine: texts are what NCCL reads.
bool says_speed(const Part& part) {
  return !part.link.speed_text.empty() || part.link.now.gt_per_s > 0;
}

std::string describe(const PcieRate& rate) {
  return fmt::format("{:g} GT/s x{}", rate.gt_per_s, rate.lanes);
}

// Parts that should have links like this one's: of the same kind and, if said, the same product.
std::string family_of(const Part& part) {
  return fmt::format("{} {} {} {}", int(part.kind), part.identity.class_code, part.identity.vendor,
                     part.identity.device);
}

bool is_leaf(const Part& part) {
  return part.kind == PartKind::kGpu || part.kind == PartKind::kNic;
}

std::vector<PartId> gpus_below(const LintSubject& subject, PartId id) {
  std::vector<PartId> gpus;
  for (const PartId below : subject.host[id].below) {
    if (subject.host[below].kind == PartKind::kGpu) gpus.push_back(below);
    const std::vector<PartId> deeper = gpus_below(subject, below);
    gpus.insert(gpus.end(), deeper.begin(), deeper.end());
  }
  return gpus;
}

void check_speed_misread(const LintSubject& subject, const Say& say) {
  for (const Part& part : subject.host.parts()) {
    const std::string& text = part.link.speed_text;
    if (text.empty() || nccl_pcie_speed(text).known) continue;
    const double meant = part.link.now.gt_per_s;
    const int lanes = part.link.now.lanes > 0 ? part.link.now.lanes : 16;
    std::string what =
        fmt::format("link_speed \"{}\" counts as 8 GT/s: {} GB/s for {}", text.substr(0, kShown),
                    nccl_pcie_gb_per_s(part.link), part.bus_id);
    if (meant > 0) {
      const NcclPcieSpeed right = nccl_pcie_speed(fmt::format("{:.1f} GT/s PCIe", meant));
      if (right.known) what += fmt::format(" where {} are meant", lanes * right.lane_gb_per_s);
    }
    say(part.place, what);
  }
}

void check_speed_missing(const LintSubject& subject, const Say& say) {
  for (const Part& part : subject.host.parts()) {
    if (has_bus_id(part) && !says_speed(part))
      say(part.place, fmt::format("{} has no link_speed", part.bus_id));
  }
}

void check_width(const LintSubject& subject, const Say& say) {
  for (const Part& part : subject.host.parts()) {
    if (has_bus_id(part) && part.link.now.lanes == 0)
      say(part.place, part.link.width_text.empty()
                          ? fmt::format("{} has no link_width", part.bus_id)
                          : fmt::format("link_width of {} is 0", part.bus_id));
  }
}

void check_below_siblings(const LintSubject& subject, const Say& say) {
  std::map<std::string, std::vector<const Part*>> families;
  for (const Part& part : subject.host.parts()) {
    if (is_leaf(part) && physical_pcie_gb_per_s(part.link) > 0)
      families[family_of(part)].push_back(&part);
  }
  for (const auto& [name, family] : families) {
    const auto rate = [](const Part* part) { return physical_pcie_gb_per_s(part->link); };
    const Part* best = *std::ranges::max_element(family, {}, rate);
    const auto slower =
        std::ranges::count_if(family, [&](const Part* one) { return rate(one) < rate(best); });
    // Where most are slower, the fast one is the exception, and nothing is wrong.
    if (2 * size_t(slower) > family.size()) continue;
    for (const Part* part : family) {
      if (rate(part) < rate(best))
        say(part->place, fmt::format("{} has {}, others of its kind {}", part->bus_id,
                                     describe(part->link.now), describe(best->link.now)));
    }
  }
}

void check_below_most(const LintSubject& subject, const Say& say) {
  for (const Part& part : subject.host.parts()) {
    const PcieLink& link = part.link;
    if (link.now.lanes > 0 && link.now.lanes < link.most.lanes)
      say(part.place,
          fmt::format("{} has {} of {} lanes", part.bus_id, link.now.lanes, link.most.lanes));
  }
}

void check_slow_uplink(const LintSubject& subject, const Say& say) {
  for (const PartId id : subject.host.all_of(PartKind::kPcieSwitch)) {
    const Part& bridge = subject.host[id];
    const double up = physical_pcie_gb_per_s(bridge.link);
    double most = 0;
    const Part* fastest = nullptr;
    for (const PartId below : bridge.below) {
      const double rate = physical_pcie_gb_per_s(subject.host[below].link);
      if (rate > most) fastest = &subject.host[below];
      most = std::max(most, rate);
    }
    if (up <= 0 || most <= up) continue;
    const bool is_virtual = bridge.link.now.gt_per_s == 2.5 && bridge.link.now.lanes == 1;
    say(bridge.place,
        fmt::format("{} has {}, {} below it {}: {:.3g} times as much{}", bridge.bus_id,
                    describe(bridge.link.now), fastest->bus_id, describe(fastest->link.now),
                    most / up, is_virtual ? "; 2.5 GT/s x1 is what virtual bridges say" : ""));
  }
}

void check_shared_uplink(const LintSubject& subject, const Say& say) {
  for (const PartId id : subject.host.all_of(PartKind::kPcieSwitch)) {
    const Part& bridge = subject.host[id];
    const bool is_upmost =
        bridge.above == kNoPart || subject.host[bridge.above].kind != PartKind::kPcieSwitch;
    const double up = physical_pcie_gb_per_s(bridge.link);
    const std::vector<PartId> gpus = gpus_below(subject, id);
    double all = 0;
    for (const PartId gpu : gpus) all += physical_pcie_gb_per_s(subject.host[gpu].link);
    if (is_upmost && gpus.size() > 1 && up > 0 && all > up)
      say(bridge.place, fmt::format("{} GPUs share the {:.3g} GB/s of {}, and could take {:.3g}",
                                    gpus.size(), up, bridge.bus_id, all));
  }
}

}  // namespace

std::span<const LintRow> lint_speed_rows() {
  using enum Severity;
  static constexpr auto kRows = std::to_array<LintRow>({
      {{"speed-misread", kError, "a link_speed that NCCL does not know",
        "NCCL compares it with a few texts, and takes any other for 8 GT/s without a word",
        "write \"16.0 GT/s PCIe\", as the kernel does"},
       nullptr,
       check_speed_misread},
      {{"speed-missing", kWarning, "a link without a speed",
        "NCCL takes 8 GT/s, or what the machine that it runs on says",
        "add link_speed, as in /sys/bus/pci/devices/*/max_link_speed"},
       nullptr,
       check_speed_missing,
       true},
      {{"width-missing", kWarning, "a link without lanes",
        "NCCL takes 16, which a x8 or x4 device does not have",
        "add link_width, as in /sys/bus/pci/devices/*/max_link_width"},
       nullptr,
       check_width,
       true},
      {{"link-below-siblings", kWarning, "a slower link than others of its kind have",
        "every collective waits for its slowest GPU or NIC",
        "look for a bad riser or slot (lspci -vv, LnkSta), or correct the file"},
       nullptr,
       check_below_siblings},
      {{"link-below-width", kWarning, "a link that came up with fewer lanes than it has",
        "every collective waits for its slowest GPU or NIC",
        "reseat the card; look at lspci -vv, LnkCap and LnkSta"},
       nullptr,
       check_below_most},
      {{"uplink-slower", kWarning, "a switch whose uplink is slower than a link below it",
        "NCCL takes it for the limit of all that crosses the switch",
        "if the bridge is virtual, write the speed of the link that is really there"},
       nullptr,
       check_slow_uplink},
      {{"uplink-shared", kNote, "several GPUs share a slower uplink",
        "copies between host and GPUs, and GPU to GPU through the host, share it",
        "nothing, if the machine is built so"},
       nullptr,
       check_shared_uplink},
  });
  return kRows;
}

}  // namespace gxp
