#include <algorithm>

#include "lib/base/text_file.h"
#include "lib/tools/topology/read/smi_matrix.h"
#include "lib/tools/topology/view/device_matrix.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"

namespace gxp {
namespace {

std::string pasted(const std::string& file) {
  return read_text_file(std::string(GXP_TEST_DATA) + "/topo/smi/" + file, 1 << 20);
}

HostTree host_of(const std::string& text) {
  return host_of_matrix(read_pasted_matrix(text, "m.txt"), "m.txt");
}

// The pasted cells that the host's own matrix does not have.
std::vector<std::string> differences(const std::string& text) {
  const PastedMatrix matrix = read_pasted_matrix(text, "m.txt");
  const HostTree host = host_of_matrix(matrix, "m.txt");
  const DeviceMatrix given = smi_matrix(host);
  const std::vector<PartId> devices = given.devices();
  REQUIRE(devices.size() == matrix.devices.size());
  // NICs come in the tree's order, not in that of the columns.
  std::vector<size_t> place;
  for (const PastedMatrix::Device& device : matrix.devices) {
    const std::string& name = device.name.empty() ? device.column : device.name;
    place.push_back(size_t(std::ranges::find(devices, find_part(host, name)) - devices.begin()));
    REQUIRE(place.back() < devices.size());
  }
  std::vector<std::string> different;
  for (size_t a = 0; a < place.size(); ++a) {
    for (size_t b = 0; b < place.size(); ++b) {
      if (!matrix.cells[a][b].empty() && matrix.cells[a][b] != given.cells[place[a]][place[b]])
        different.push_back(matrix.devices[a].column + "-" + matrix.devices[b].column);
    }
  }
  return different;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

bool notes_say(const HostTree& host, const std::string& text) {
  return std::ranges::any_of(
      host.notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("the host of a pasted matrix has that matrix", "[inspect]") {
  const std::string file = GENERATE("dgx1-v100-4mlx.txt", "a100-8gpu-4nic-socket0.txt");
  const std::string text = pasted(file);
  CHECK(differences(text).empty());
  CHECK(differences(replaced(text, "\t", "   ")).empty());
  CHECK(differences("$ nvidia-smi topo -m\r\n" + replaced(text, "\n", "\r\n")).empty());
  CHECK(differences(replaced(text, "GPU", "\x1b[4mGPU\x1b[0m")).empty());
  CHECK(differences(replaced(replaced(text, "\t X ", "\tX"), "SYS\t", "SYS")).empty());
}

TEST_CASE("a matrix that no tree has is taken as far as it goes, and what not is noted",
          "[inspect]") {
  const std::string text = pasted("h100-8gpu-10mlx-no-nic-rows.txt");
  const HostTree host = host_of(text);
  CHECK(differences(text).size() == 12);
  CHECK(notes_say(host, "GPU1 to mlx5_8 is NODE, but SYS by the other cells"));
  CHECK(notes_say(host, "2 more pairs contradict other cells"));
  CHECK(host.all_of(PartKind::kNvSwitch).size() == 1);
}

TEST_CASE("GPUs that NVLinks hide lie where their CPUs are", "[inspect]") {
  const HostTree host = host_of(
      "        GPU0    GPU1    GPU2    CPU Affinity    NUMA Affinity\n"
      "GPU0     X      NV4     NV4     0-3     0\n"
      "GPU1    NV4      X      NV4     0-3     0\n"
      "GPU2    NV4     NV4      X      4-7     1\n");
  CHECK(host.all_of(PartKind::kNumaNode).size() == 2);
  CHECK(host.cross_links().size() == 6);
  CHECK(host.find_above(find_part(host, "GPU1"), PartKind::kNumaNode) == find_part(host, "NUMA0"));
  CHECK(std::get<NumaNodeInfo>(host[find_part(host, "NUMA1")].info).affinity == "000000f0");
}

TEST_CASE("GPUs whose memory is a NUMA node keep what is said of it", "[inspect]") {
  const std::string head = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
  const std::string rows =
      "GPU0\t X \tNV18\t0-71\t0,2-9\t\t2\n"
      "GPU1\tNV18\t X \t0-71\t0,10-17\t\t10\n";
  const HostTree host = host_of(head + rows);
  CHECK(matrix_text(host, smi_matrix(host), smi_legend(host)).starts_with(head + rows));
  REQUIRE(host.all_of(PartKind::kNumaNode).size() == 1);
  CHECK(info_of<NumaNodeInfo>(host[host.all_of(PartKind::kNumaNode)[0]]).number == 0);
}

TEST_CASE("a legend without NVLinks is that of PCIe paths alone", "[inspect]") {
  const std::string rows = "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n";
  const std::string legend = "\n  X    = Self\n  PIX  = Connection traversing at most ...\n";
  const std::string why = "topo -mp, which does not show NVLinks";
  CHECK(notes_say(host_of(rows + legend), why));
  CHECK_FALSE(notes_say(host_of(rows), why));
  CHECK_FALSE(notes_say(host_of(rows + legend + "  NV#  = Connection traversing ...\n"), why));
}

TEST_CASE("a legend names the NICs, also where their rows are missing", "[inspect]") {
  const std::string text =
      "\tGPU0\tNIC0\tNIC1\tCPU Affinity\nGPU0\t X \tPIX\tNODE\t0-7\n\n"
      "NIC Legend:\n\n  NIC0: mlx5_4\n  NIC1: mlx5_bond_0\n";
  const HostTree host = host_of(text);
  CHECK(differences(text).empty());
  CHECK(find_part(host, "mlx5_bond_0") != kNoPart);
}

TEST_CASE("what peers may do tells nothing of their places", "[inspect]") {
  const HostTree host = host_of(" \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tCNS\tX\n");
  CHECK(host.all_of(PartKind::kGpu).size() == 2);
  CHECK(notes_say(host, "GPU0 to GPU1 is OK, and back CNS"));
  CHECK(notes_say(host, "but not their location"));
}

}  // namespace gxp
