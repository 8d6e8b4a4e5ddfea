// Bus ids, classes and switches of PCIe devices.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "lib/inspect/check/lint_rules.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

bool is_hexadecimal(std::string_view text, size_t least, size_t most) {
  return text.size() >= least && text.size() <= most &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "0000:3b:00.0"; domains have up to 8 digits.
bool is_plain_bus_id(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.size() != colon + 8) return false;
  return is_hexadecimal(text.substr(0, colon), 4, 8) &&
         is_hexadecimal(text.substr(colon + 1, 2), 2, 2) && text[colon + 3] == ':' &&
         is_hexadecimal(text.substr(colon + 4, 2), 2, 2) && text[colon + 6] == '.' &&
         text[colon + 7] >= '0' && text[colon + 7] <= '7';
}

bool holds_pci(const LintSubject& subject, const Part& part) {
  return std::ranges::any_of(part.below, [&](PartId id) { return has_bus_id(subject.host[id]); });
}

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

// The two levels of one Broadcom switch.
bool both_broadcom(const LintSubject& subject, PartId id, bool& flattens) {
  const Part& lower = subject.host[id];
  if (lower.kind != PartKind::kPcieSwitch || lower.above == kNoPart) return false;
  const Part& upper = subject.host[lower.above];
  const auto is_broadcom = [](const Part& part) {
    return part.kind == PartKind::kPcieSwitch &&
           (broadcom_generation(part.identity, SwitchLevel::kUpper) != 0 ||
            broadcom_generation(part.identity, SwitchLevel::kLower) != 0 ||
            (part.identity.vendor == "0x1000" && part.identity.device.starts_with("0xc0")));
  };
  const int generation = broadcom_generation(upper.identity, SwitchLevel::kUpper);
  flattens =
      generation != 0 && broadcom_generation(lower.identity, SwitchLevel::kLower) == generation;
  return is_broadcom(upper) && is_broadcom(lower);
}

void check_broadcom(const LintSubject& subject, const Say& say, bool flattened) {
  for (const PartId id : subject.host.all_of(PartKind::kPcieSwitch)) {
    bool flattens = false;
    if (!both_broadcom(subject, id, flattens) || flattens != flattened) continue;
    const Part& upper = subject.host[subject.host[id].above];
    say(subject.host[id].place,
        fmt::format("{} below {}, subsystem devices {} and {}", subject.host[id].bus_id,
                    upper.bus_id, subject.host[id].identity.subsystem_device,
                    upper.identity.subsystem_device));
  }
}

void check_bus_id(const LintSubject& subject, const Say& say) {
  for (const Part& part : subject.host.parts()) {
    if (has_bus_id(part) && !is_plain_bus_id(part.bus_id))
      say(part.place, fmt::format("busid \"{}\"", part.bus_id.substr(0, kShown)));
  }
}

void check_bus_id_twice(const LintSubject& subject, const Say& say) {
  std::map<std::string, SourcePlace> seen;
  for (const Part& part : subject.host.parts()) {
    if (!has_bus_id(part)) continue;
    const auto [first, is_new] = seen.try_emplace(part.bus_id, part.place);
    if (!is_new)
      say(part.place, fmt::format("busid {} stands twice, first in line {}",
                                  part.bus_id.substr(0, kShown), first->second.line));
  }
}

void check_bus_id_of_none(const LintSubject& subject, const Say& say) {
  for (const Part& part : subject.host.parts()) {
    if (part.bus_id.starts_with("ffff:ff:") || part.bus_id.starts_with("fffffff:ff:"))
      say(part.place, fmt::format("busid {} is no device's", part.bus_id.substr(0, kShown)));
  }
}

void check_class_missing(const LintSubject& subject, const Say& say) {
  for (const Part& part : subject.host.parts()) {
    if (has_bus_id(part) && part.identity.class_code.empty())
      say(part.place, fmt::format("device {} has no class", part.bus_id.substr(0, kShown)));
  }
}

void check_class_unknown(const LintSubject& subject, const Say& say) {
  for (const Part& part : subject.host.parts()) {
    const std::string& code = part.identity.class_code;
    if (has_bus_id(part) && !code.empty() && meaning_of(code) == Meaning::kUnknown)
      say(part.place,
          fmt::format("class {} of {}", code.substr(0, kShown), part.bus_id.substr(0, kShown)));
  }
}

void check_class_contradicts(const LintSubject& subject, const Say& say) {
  for (const Part& part : subject.host.parts()) {
    const std::string& code = part.identity.class_code;
    const Meaning meaning = meaning_of(code);
    if (!has_bus_id(part) || code.empty() || meaning == Meaning::kUnknown) continue;
    if (part.kind == PartKind::kGpu && meaning != Meaning::kGpu)
      say(part.place,
          fmt::format("<gpu> in {}, whose class {} is none of a GPU", part.bus_id, code));
    if (part.kind == PartKind::kNic && meaning != Meaning::kNic)
      say(part.place,
          fmt::format("<nic> in {}, whose class {} is none of a NIC", part.bus_id, code));
  }
}

// NCCL follows <pci> elements only below what it takes for a bridge: all classes but these.
void check_class_hides(const LintSubject& subject, const Say& say) {
  for (const Part& part : subject.host.parts()) {
    const Meaning meaning = meaning_of(part.identity.class_code);
    const bool hides = part.kind == PartKind::kNic ||
                       part.identity.class_code.starts_with("0x03") || meaning == Meaning::kNic ||
                       meaning == Meaning::kNvSwitch ||
                       part.identity.class_code.starts_with("0x068001");
    if (has_bus_id(part) && hides && holds_pci(subject, part))
      say(part.place, fmt::format("{} of class {} has devices below it", part.bus_id,
                                  part.identity.class_code));
  }
}

void check_broadcom_flattened(const LintSubject& subject, const Say& say) {
  check_broadcom(subject, say, true);
}

void check_broadcom_kept(const LintSubject& subject, const Say& say) {
  check_broadcom(subject, say, false);
}

}  // namespace

std::span<const LintRow> lint_pcie_rows() {
  using enum Severity;
  static constexpr auto kRows = std::to_array<LintRow>({
      {{"bus-id-malformed", kError, "a bus id that is none", "NCCL cannot match it to a device",
        "write domain:bus:device.function, as lspci -D does"},
       nullptr,
       check_bus_id},
      {{"bus-id-twice", kError, "two devices of one bus id",
        "NCCL takes them for one device or links the wrong one",
        "write each device once, with the bus id that lspci -D shows"},
       nullptr,
       check_bus_id_twice},
      {{"bus-id-of-none", kNote, "a bus id that no device can have",
        "clouds write it for switches that the virtual machine hides; NCCL takes the switch as "
        "told",
        "nothing, if a hidden switch is meant"},
       nullptr,
       check_bus_id_of_none},
      {{"class-missing", kWarning, "a device without a class",
        "NCCL learns it from /sys of the machine that it runs on, and only for GPUs and NICs in "
        "use; "
        "of the file alone nobody can tell what it is",
        "add class, as lspci -n shows it: 0x030200, 0x020700, 0x060400"},
       nullptr,
       check_class_missing},
      {{"class-unknown", kWarning, "a class that stands for nothing here",
        "NCCL takes every class that it does not know for a bridge",
        "correct it, or leave the device out"},
       nullptr,
       check_class_unknown},
      {{"class-contradicts", kWarning, "a class that is not what the element says",
        "NCCL goes by the element in one place and by the class in another",
        "GPUs have class 0x03..., NICs 0x02..."},
       nullptr,
       check_class_contradicts},
      {{"class-hides-devices", kError, "devices below what is no bridge",
        "NCCL does not look below GPUs, NICs and NVSwitches: these devices do not exist for it",
        "give the bridge class 0x060400"},
       nullptr,
       check_class_hides},
      {{"broadcom-flattened", kNote, "a Broadcom switch that shows itself as two levels",
        "NCCL joins both levels: paths that nvidia-smi calls PXB are PIX for it", "nothing"},
       nullptr,
       check_broadcom_flattened},
      {{"broadcom-not-flattened", kWarning,
        "two levels of a Broadcom switch that NCCL does not join",
        "GPU and NIC on two parts of one switch count as farther apart (PXB) than they are",
        "if it is one switch, write its devices below the upper level"},
       nullptr,
       check_broadcom_kept},
  });
  return kRows;
}

}  // namespace gxp
