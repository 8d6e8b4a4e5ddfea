// Bus ids, classes and switches of PCIe devices.

#include <algorithm>
#include <array>
#include <numeric>

#include "lib/tools/topology/check/lint_rules.h"
#include "lib/topo/nccl/nccl_rules.h"
#include "lib/topo/read/pci_tree.h"

namespace gxp {
namespace {

enum class Meaning { kBridge, kGpu, kNic, kNvSwitch, kOther, kUnknown };

struct ClassRow {
  std::string_view start;
  Meaning meaning;
};

// PCI Code and ID Assignment Specification 1.15; the first that fits.
constexpr std::array<ClassRow, 13> kClasses = {{{"0x0604", Meaning::kBridge},
                                                {"0x0600", Meaning::kBridge},
                                                {"0x0609", Meaning::kBridge},
                                                {"0x068000", Meaning::kNvSwitch},
                                                {"0x068001", Meaning::kOther},
                                                {"0x080100", Meaning::kBridge},
                                                {"0x03", Meaning::kGpu},
                                                {"0x12", Meaning::kGpu},
                                                {"0x02", Meaning::kNic},
                                                {"0x0b", Meaning::kOther},
                                                {"0x01", Meaning::kOther},
                                                {"0x08", Meaning::kOther},
                                                {"0x0c", Meaning::kOther}}};

Meaning meaning_of(std::string_view class_code) {
  const auto* const row = std::ranges::find_if(
      kClasses, [&](const ClassRow& one) { return class_code.starts_with(one.start); });
  return row == kClasses.end() ? Meaning::kUnknown : row->meaning;
}

bool is_broadcom(const Part& part) {
  return part.kind == PartKind::kPcieSwitch &&
         (broadcom_generation(part.identity, SwitchLevel::kUpper) != 0 ||
          broadcom_generation(part.identity, SwitchLevel::kLower) != 0 ||
          (part.identity.vendor == "0x1000" && part.identity.device.starts_with("0xc0")));
}

// The two levels of one Broadcom switch, which NCCL flattens into one, or keeps.
template <bool kFlattened>
void check_broadcom(const LintPart& lower, const LintReporter& report) {
  if (lower.part.above == kNoPart) return;
  const Part& upper = lower.host[lower.part.above];
  if (!is_broadcom(upper) || !is_broadcom(lower.part)) return;
  const int generation = broadcom_generation(upper.identity, SwitchLevel::kUpper);
  const bool flattens = generation != 0 &&
                        broadcom_generation(lower.part.identity, SwitchLevel::kLower) == generation;
  if (flattens == kFlattened)
    report(lower.place(), "{} below {}, subsystem devices {} and {}", lower.part.bus_id,
           upper.bus_id, lower.part.identity.subsystem_device, upper.identity.subsystem_device);
}

std::string shown_bus_id(const LintPart& one) { return one.part.bus_id.substr(0, kShown); }

void check_bus_id(const LintPart& one, const LintReporter& report) {
  const std::string& bus_id = one.part.bus_id;
  if (!bus_id.empty() && (!is_bus_id(bus_id) || bus_id.back() > '7'))
    report(one.place(), "busid \"{}\"", shown_bus_id(one));
}

void check_bus_id_twice(const LintSubject& subject, const LintReporter& report) {
  std::vector<PartId> all(subject.host.parts().size());
  std::iota(all.begin(), all.end(), PartId{0});
  using Key = std::optional<std::pair<std::string, std::string>>;
  const auto key_of = [](const Part& part) {
    const std::string& id = part.bus_id;
    return id.empty() ? Key() : Key({id.substr(0, kShown), id});
  };
  report_duplicates(subject, all, "busid", key_of, report);
}

void check_bus_id_of_none(const LintPart& one, const LintReporter& report) {
  if (one.part.bus_id.starts_with("ffff:ff:") || one.part.bus_id.starts_with("fffffff:ff:"))
    report(one.place(), "busid {} is not a device's", shown_bus_id(one));
}

void check_class_missing(const LintPart& one, const LintReporter& report) {
  if (!one.part.bus_id.empty() && one.part.identity.class_code.empty())
    report(one.place(), "device {} has no class", shown_bus_id(one));
}

void check_class_unknown(const LintPart& one, const LintReporter& report) {
  const std::string& code = one.part.identity.class_code;
  if (!one.part.bus_id.empty() && !code.empty() && meaning_of(code) == Meaning::kUnknown)
    report(one.place(), "class {} of {}", code.substr(0, kShown), shown_bus_id(one));
}

void check_class_contradicts(const LintPart& one, const LintReporter& report) {
  const Part& part = one.part;
  const std::string& code = part.identity.class_code;
  const Meaning meaning = meaning_of(code);
  if (part.bus_id.empty() || code.empty() || meaning == Meaning::kUnknown) return;
  if (part.kind == PartKind::kGpu && meaning != Meaning::kGpu)
    report(part.place, "<gpu> in {}, whose class {} is not that of a GPU", part.bus_id, code);
  if (part.kind == PartKind::kNic && meaning != Meaning::kNic)
    report(part.place, "<nic> in {}, whose class {} is not that of a NIC", part.bus_id, code);
}

// NCCL follows <pci> elements only below what it takes for a bridge: all classes but these.
void check_class_hides(const LintPart& one, const LintReporter& report) {
  const std::string& code = one.part.identity.class_code;
  const Meaning meaning = meaning_of(code);
  const bool hides = one.part.kind == PartKind::kNic || code.starts_with("0x03") ||
                     meaning == Meaning::kNic || meaning == Meaning::kNvSwitch ||
                     code.starts_with("0x068001");
  const bool holds_pci =
      std::ranges::any_of(one.part.below, [&](PartId id) { return !one.host[id].bus_id.empty(); });
  if (!one.part.bus_id.empty() && hides && holds_pci)
    report(one.place(), "{} of class {} has devices below it", one.part.bus_id, code);
}

constexpr auto kPcieRules = [] {
  using enum Severity;
  return std::to_array<LintRule>({
      {"bus-id-malformed", kError, "an invalid bus id", "NCCL cannot match it to a device",
       "write domain:bus:device.function, as lspci -D does", each_part<check_bus_id>},
      {"bus-id-twice", kError, "two devices with the same bus id",
       "NCCL takes them for one device or links the wrong one",
       "write each device once, with the bus id that lspci -D shows", check_bus_id_twice},
      {"bus-id-of-none", kNote, "a bus id that no device can have",
       "clouds write it for switches that the virtual machine hides; NCCL accepts the switch",
       "nothing, if a hidden switch is meant", each_part<check_bus_id_of_none>},
      {"class-missing", kWarning, "a device without a class",
       "NCCL learns it from /sys of the machine that it runs on, and only for GPUs and NICs in "
       "use; the file alone does not identify the device",
       "add class, as lspci -n shows it: 0x030200, 0x020700, 0x060400",
       each_part<check_class_missing>},
      {"class-unknown", kWarning, "a class that is not known",
       "NCCL takes every class that it does not know for a bridge",
       "correct it, or leave the device out", each_part<check_class_unknown>},
      {"class-contradicts", kWarning, "a class that contradicts the element",
       "NCCL uses the element in some places and the class in others",
       "GPUs have class 0x03..., NICs 0x02...", each_part<check_class_contradicts>},
      {"class-hides-devices", kError, "devices below a device that is not a bridge",
       "NCCL does not look below GPUs, NICs and NVSwitches: it ignores these devices",
       "give the bridge class 0x060400", each_part<check_class_hides>},
      {"broadcom-flattened", kNote, "a Broadcom switch that shows itself as two levels",
       "NCCL joins both levels: paths that nvidia-smi calls PXB are PIX for it", "nothing",
       each<PartKind::kPcieSwitch, check_broadcom<true>>},
      {"broadcom-not-flattened", kWarning,
       "two levels of a Broadcom switch that NCCL does not join",
       "GPU and NIC on two parts of one switch count as farther apart (PXB) than they are",
       "if it is one switch, write its devices below the upper level",
       each<PartKind::kPcieSwitch, check_broadcom<false>>},
  });
}();

}  // namespace

std::span<const LintRule> lint_pcie_rules() { return kPcieRules; }

}  // namespace gxp
