#include "lib/tools/topology/compare/vm_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/text_file.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/xml_text.h"
#include "lib/topo/nccl/nccl_paths.h"
#include "tests/catch.h"

namespace gxp {
namespace {

HostTree load(const std::string& name) {
  const std::string file = std::string(GXP_TEST_DATA) + "/topo/" + name + ".xml";
  return read_nccl_xml(read_text_file(file, kMaxXmlBytes), name);
}

// What a VM with all devices of the machine shows: one NUMA node, no bridges, other bus ids, in
// the order of the tree or the other way round.
HostTree flat_vm(const HostTree& bare, bool reversed = false) {
  HostTree vm;
  vm.name = "vm.xml";
  vm.dialect = bare.dialect;
  const PartId node = vm.add({.kind = PartKind::kNumaNode,
                              .info = NumaNodeInfo{.number = 0,
                                                   .architecture = "x86_64",
                                                   .vendor = "GenuineIntel",
                                                   .affinity = "ffffffff"}});
  std::map<PartId, PartId> copies;
  int bus = 0x40;
  for (const PartKind kind : {PartKind::kGpu, PartKind::kNic}) {
    for (const PartId id : bare.all_of(kind)) {
      Part part = bare[id];
      part.above = node;
      part.below.clear();
      part.bus_id = fmt::format("0001:{:02x}:00.0", reversed ? 0x80 - bus : bus);
      ++bus;
      copies[id] = vm.add(part);
      for (const PartId below : bare[id].below) {
        Part port = bare[below];
        port.above = copies[id];
        vm.add(port);
      }
    }
  }
  for (CrossLink link : bare.cross_links()) {
    link.from = copies.at(link.from);
    vm.add_cross_link(link);
  }
  return vm;
}

std::string types(const HostTree& host) {
  const NcclPaths paths(host);
  std::string text;
  for (const PartId gpu : paths.gpus()) {
    for (const PartId other : paths.gpus()) text += to_string(paths.distance(gpu, other).type);
    for (const PartId port : paths.ports()) text += to_string(paths.distance(gpu, port).type);
  }
  return text;
}

}  // namespace

TEST_CASE("a VM's topology is the bare-metal host's with the VM's bus ids", "[inspect]") {
  const HostTree bare = load("oci-H100-topology");
  const HostTree vm = flat_vm(bare);
  CHECK(types(vm) != types(bare));
  const VmTopology made = make_vm_topology(bare, vm);
  CHECK(made.equal_pairs == 16 * 15 / 2);
  CHECK(made.matches[0].why == "by the order of bus ids, since nothing else identifies it");
  CHECK(made.matches[8].why == "by the guids of its ports");
  // As NCCL reads it.
  const std::string xml = write_nccl_xml(made.host);
  CHECK(types(read_nccl_xml(xml, "made")) == types(bare));
  CHECK(xml.find("busid=\"0000:") == std::string::npos);
  for (const PartId id : vm.all_of(PartKind::kGpu))
    CHECK(xml.find("busid=\"" + vm[id].bus_id + "\"") != std::string::npos);
}

TEST_CASE("NICs are found by their guids whatever their order", "[inspect]") {
  const HostTree bare = load("oci-H100-topology");
  const HostTree vm = flat_vm(bare, true);
  const VmTopology made = make_vm_topology(bare, vm);
  const auto warns = [](const std::string& note) {
    return note.find("have another order of bus ids in the VM") != std::string::npos;
  };
  CHECK(std::ranges::count_if(made.notes, warns) == 1);
  CHECK(std::ranges::count_if(make_vm_topology(bare, flat_vm(bare)).notes, warns) == 0);
  for (const DeviceMatch& match : made.matches) {
    if (bare[match.bare].kind != PartKind::kNic) continue;
    const auto name = [](const HostTree& host, PartId nic) {
      return std::get<PortInfo>(host[host[nic].below[0]].info).name;
    };
    CHECK(name(bare, match.bare) == name(vm, match.vm));
  }
}

TEST_CASE("a skeleton serves as the bare-metal host", "[inspect]") {
  const HostTree bare = load("aws-p4d-24xl-topo");
  const VmTopology made = make_vm_topology(bare, flat_vm(bare));
  CHECK(types(read_nccl_xml(write_nccl_xml(made.host), "made")) == types(bare));
}

TEST_CASE("machines that cannot be one are refused", "[inspect]") {
  const HostTree bare = load("oci-H100-topology");
  CHECK_THROWS_WITH(make_vm_topology(bare, flat_vm(load("aws-p4d-24xl-topo"))),
                    Catch::Contains("it has 0 GPUs of model 0x10de:0x2330") ||
                        Catch::Contains("it has 8 GPUs of model 0x10de:0x20b0"));
  CHECK_THROWS_WITH(make_vm_topology(bare, flat_vm(load("azure-ncv4-topo"))),
                    Catch::Contains("vm.xml has 4 GPUs, the bare-metal host has 8") ||
                        Catch::Contains("it has 4 GPUs, the bare-metal host has 8"));
  HostTree vm = flat_vm(bare);
  const PartId nic = vm.all_of(PartKind::kNic)[2];
  for (const PartId port : vm[nic].below) std::get<PortInfo>(vm[port].info).guid = "0x1234";
  CHECK_THROWS_WITH(
      make_vm_topology(bare, vm),
      Catch::Contains(vm[nic].bus_id) && Catch::Contains("no device of the bare-metal host"));
  vm = flat_vm(bare);
  std::get<GpuInfo>(vm[vm.all_of(PartKind::kGpu)[0]].info).rank.reset();
  CHECK_THROWS_WITH(make_vm_topology(bare, vm),
                    Catch::Contains("NCCL would find DIS, on the bare-metal host PIX"));
}

}  // namespace gxp
