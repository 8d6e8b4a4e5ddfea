// Speeds and widths of PCIe links.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "lib/tools/topology/check/lint_rules.h"
#include "lib/topo/model/text_parts.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

std::string describe(const PcieRate& rate) {
  return fmt::format("{:g} GT/s x{}", rate.gt_per_s, rate.lanes);
}

// Parts that should have links like this one's: of the same kind and, if said, the same product.
std::string family_of(const Part& part) {
  return fmt::format("{} {} {} {}", int(part.kind), part.identity.class_code, part.identity.vendor,
                     part.identity.device);
}

// The GPUs below a part, each at any depth: what their links carry.
void add_gpus_below(const HostTree& host, const Part& part, std::vector<double>& gb_per_s) {
  for (const PartId id : part.below) {
    if (host[id].kind == PartKind::kGpu) gb_per_s.push_back(physical_pcie_gb_per_s(host[id].link));
    add_gpus_below(host, host[id], gb_per_s);
  }
}

void check_speed_misread(const LintPart& one, const LintReporter& report) {
  const PcieLink& link = one.part.link;
  if (link.speed_text.empty() || nccl_pcie_speed(link.speed_text).known) return;
  const int lanes = link.now.lanes > 0 ? link.now.lanes : 16;
  const NcclPcieSpeed right = nccl_pcie_speed(fmt::format("{:.1f} GT/s PCIe", link.now.gt_per_s));
  const bool has_meaning = link.now.gt_per_s > 0 && right.known;
  report(one.place(), "link_speed \"{}\" counts as 8 GT/s: {} GB/s for {}{}",
         link.speed_text.substr(0, kShown), nccl_pcie_gb_per_s(link), one.part.bus_id,
         has_meaning ? fmt::format(" where {} are meant", lanes * right.lane_gb_per_s) : "");
}

void check_speed_missing(const LintPart& one, const LintReporter& report) {
  const bool is_said = !one.part.link.speed_text.empty() || one.part.link.now.gt_per_s > 0;
  if (!one.part.bus_id.empty() && !is_said)
    report(one.place(), "{} has no link_speed", one.part.bus_id);
}

void check_width(const LintPart& one, const LintReporter& report) {
  if (one.part.bus_id.empty() || one.part.link.now.lanes != 0) return;
  if (one.part.link.width_text.empty()) {
    report(one.place(), "{} has no link_width", one.part.bus_id);
  } else if (leading_number<int>(one.part.link.width_text) == 0) {
    report(one.place(), "link_width of {} is 0", one.part.bus_id);
  }
}

void check_width_unknown(const LintPart& one, const LintReporter& report) {
  const std::string& text = one.part.link.width_text;
  if (one.part.link.now.lanes == 0 && leading_number<int>(text) > 0)
    report(one.place(), "link_width of {} is {}", one.part.bus_id, text.substr(0, kShown));
}

void check_below_siblings(const LintSubject& subject, const LintReporter& report) {
  std::map<std::string, std::vector<const Part*>> families;
  for (const Part& part : subject.host.parts()) {
    const bool is_device = part.kind == PartKind::kGpu || part.kind == PartKind::kNic;
    if (is_device && physical_pcie_gb_per_s(part.link) > 0)
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
        report(part->place, "{} has {}, others of its kind {}", part->bus_id,
               describe(part->link.now), describe(best->link.now));
    }
  }
}

void check_below_most(const LintPart& one, const LintReporter& report) {
  const PcieLink& link = one.part.link;
  if (link.now.lanes > 0 && link.now.lanes < link.most.lanes)
    report(one.place(), "{} has {} of {} lanes", one.part.bus_id, link.now.lanes, link.most.lanes);
}

void check_slow_uplink(const LintPart& bridge, const LintReporter& report) {
  const PcieRate& now = bridge.part.link.now;
  const double up = physical_pcie_gb_per_s(bridge.part.link);
  double most = 0;
  const Part* fastest = nullptr;
  for (const PartId below : bridge.part.below) {
    const double rate = physical_pcie_gb_per_s(bridge.host[below].link);
    if (rate > most) fastest = &bridge.host[below];
    most = std::max(most, rate);
  }
  if (up <= 0 || most <= up) return;
  const bool is_virtual = now.gt_per_s == 2.5 && now.lanes == 1;
  report(bridge.place(), "{} has {}, {} below it {}: {:.3g} times as much{}", bridge.part.bus_id,
         describe(now), fastest->bus_id, describe(fastest->link.now), most / up,
         is_virtual ? "; virtual bridges report 2.5 GT/s x1" : "");
}

void check_shared_uplink(const LintPart& bridge, const LintReporter& report) {
  const PartId above = bridge.part.above;
  if (above != kNoPart && bridge.host[above].kind == PartKind::kPcieSwitch) return;
  const double up = physical_pcie_gb_per_s(bridge.part.link);
  std::vector<double> gpus;
  add_gpus_below(bridge.host, bridge.part, gpus);
  const double all = std::accumulate(gpus.begin(), gpus.end(), 0.0);
  if (gpus.size() > 1 && up > 0 && all > up)
    report(bridge.place(), "{} GPUs share the {:.3g} GB/s of {}, and could use {:.3g}", gpus.size(),
           up, bridge.part.bus_id, all);
}

constexpr auto kSpeedRules = [] {
  using enum Severity;
  return std::to_array<LintRule>({
      {"speed-misread", kError, "a link_speed that NCCL does not know",
       "NCCL compares it with a few texts, and silently takes any other for 8 GT/s",
       "write \"16.0 GT/s PCIe\", as Linux does", each_part<check_speed_misread>},
      {"speed-missing", kWarning, "a link without a speed",
       "NCCL takes 8 GT/s, or what the machine that it runs on says",
       "add link_speed, as in /sys/bus/pci/devices/*/max_link_speed",
       each_part<check_speed_missing>, true},
      {"width-missing", kWarning, "a link without lanes",
       "NCCL takes 16, which a x8 or x4 device does not have",
       "add link_width, as in /sys/bus/pci/devices/*/max_link_width", each_part<check_width>, true},
      {"width-unknown", kWarning, "a width that no link has",
       "Linux writes 255 for an unknown width, and 63 for a device that does not answer; NCCL "
       "counts as many lanes",
       "write the lanes that the link has, such as 16", each_part<check_width_unknown>, true},
      {"link-below-siblings", kWarning, "a slower link than others of its kind",
       "every collective waits for its slowest GPU or NIC",
       "look for a bad riser or slot (lspci -vv, LnkSta), or correct the file",
       check_below_siblings},
      {"link-below-width", kWarning, "a link that came up with fewer lanes than it has",
       "every collective waits for its slowest GPU or NIC",
       "reseat the card; look at lspci -vv, LnkCap and LnkSta", each_part<check_below_most>},
      {"uplink-slower", kWarning, "a switch whose uplink is slower than a link below it",
       "NCCL uses it as the limit of all paths through the switch",
       "if the bridge is virtual, write the speed of the physical link",
       each<PartKind::kPcieSwitch, check_slow_uplink>},
      {"uplink-shared", kNote, "several GPUs share a slower uplink",
       "copies between host and GPUs, and GPU to GPU through the host, share it",
       "nothing, if the machine is built so", each<PartKind::kPcieSwitch, check_shared_uplink>},
  });
}();

}  // namespace

std::span<const LintRule> lint_speed_rules() { return kSpeedRules; }

}  // namespace gxp
