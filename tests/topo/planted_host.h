// A host of a few files, for tests: NUMA nodes of two CPUs, and what is planted on PCIe.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tests/topo/recorded_root.h"

namespace gxp {

struct PlantedFunction {
  std::string path;  // below a root: "0000:3a:00.0/0000:3b:00.0"; the last is the function
  std::string class_code;
  std::string vendor;
  int node = 0;
  std::string speed = "32.0 GT/s PCIe";
  int width = 16;
};

struct PlantedHost {
  RecordedRoot root;

  explicit PlantedHost(int nodes = 2) {
    std::string cpuinfo;
    for (int cpu = 0; cpu < 2 * nodes; ++cpu) {
      const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/", cpu);
      root.add_file(folder + "topology/thread_siblings", fmt::format("{:x}\n", 1 << cpu));
      root.add_file(folder + "topology/physical_package_id", fmt::format("{}\n", cpu / 2));
      cpuinfo += fmt::format(
          "processor\t: {}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
          "model name\t: Xeon 8480\nflags\t\t: fpu vmx\n\n",
          cpu);
    }
    root.add_file("/proc/cpuinfo", cpuinfo);
    root.add_file("/sys/devices/system/cpu/online", fmt::format("0-{}\n", 2 * nodes - 1));
    for (int node = 0; node < nodes; ++node) {
      const std::string folder = fmt::format("/sys/devices/system/node/node{}/", node);
      root.add_file(folder + "cpumap", fmt::format("{:08x}\n", 3 << (2 * node)));
      root.add_file(folder + "meminfo", fmt::format("Node {} MemTotal:  1048576 kB\n", node));
    }
  }

  static std::string bus_id_of(std::string_view path) {
    return std::string(path.substr(path.rfind('/') + 1));
  }
  static std::string folder_of(const std::string& path) {
    return fmt::format("/sys/devices/pci{}/{}", path.substr(0, 7), path);
  }

  void plant(const PlantedFunction& function) {
    const std::string folder = folder_of(function.path);
    root.add_file(folder + "/class", function.class_code + "\n");
    root.add_file(folder + "/vendor", function.vendor + "\n");
    root.add_file(folder + "/device", "0x2330\n");
    root.add_file(folder + "/numa_node", fmt::format("{}\n", function.node));
    for (const char* const which : {"current", "max"}) {
      root.add_file(fmt::format("{}/{}_link_speed", folder, which), function.speed + "\n");
      root.add_file(fmt::format("{}/{}_link_width", folder, which),
                    fmt::format("{}\n", function.width));
    }
    root.add_link("/sys/bus/pci/devices/" + bus_id_of(function.path), "../../../.." + folder);
  }

  void plant_interface(const std::string& name, const std::string& path, int mbit_per_s) {
    const std::string folder = folder_of(path) + "/net/" + name;
    root.add_file(folder + "/speed", fmt::format("{}\n", mbit_per_s));
    root.add_file(folder + "/operstate", "up\n");
    root.add_file(folder + "/type", "1\n");
    root.add_link(folder + "/device", "../../../" + bus_id_of(path));
    root.add_link("/sys/class/net/" + name, "../../.." + folder);
  }

  void plant_rdma(const std::string& name, const std::string& path, std::string_view rate) {
    const std::string folder = folder_of(path) + "/infiniband/" + name;
    root.add_file(folder + "/node_guid", "b859:9f03:00c4:5d68\n");
    root.add_file(folder + "/ports/1/rate", fmt::format("{}\n", rate));
    root.add_file(folder + "/ports/1/state", "4: ACTIVE\n");
    root.add_file(folder + "/ports/1/link_layer", "Ethernet\n");
    root.add_link(folder + "/device", "../../../" + bus_id_of(path));
    root.add_link("/sys/class/infiniband/" + name, "../../.." + folder);
  }
};

// One switch of node 1 with a GPU and an RDMA NIC below it, as half of a common server's.
inline constexpr const char* kPlantedGpu = "0000:3a:00.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0";
inline constexpr const char* kPlantedNic = "0000:3a:00.0/0000:3b:00.0/0000:3c:08.0/0000:3e:00.0";

inline PlantedHost planted_gpu_host() {
  PlantedHost host;
  const auto bridge = [&](const char* path) {
    host.plant({.path = path, .class_code = "0x060400", .vendor = "0x1000", .node = 1});
  };
  bridge("0000:3a:00.0");
  bridge("0000:3a:00.0/0000:3b:00.0");
  bridge("0000:3a:00.0/0000:3b:00.0/0000:3c:00.0");
  bridge("0000:3a:00.0/0000:3b:00.0/0000:3c:08.0");
  host.plant({.path = kPlantedGpu, .class_code = "0x030200", .vendor = "0x10de", .node = 1});
  host.plant({.path = kPlantedNic, .class_code = "0x020000", .vendor = "0x15b3", .node = 1});
  host.plant_rdma("mlx5_0", kPlantedNic, "400 Gb/sec (4X NDR)");
  host.plant_interface("ens3", kPlantedNic, 400000);
  return host;
}

}  // namespace gxp
