#include "lib/tools/topology/read/smi_matrix.h"

#include <fmt/format.h>

#include <array>
#include <functional>

#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"
#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {

TEST_CASE("a broken matrix is an error that says where and why", "[topo]") {
  const auto [text, said] = GENERATE(table<std::string, std::string>({
      {"hello", "m.txt:1:1: the header row"},
      {"GPU0 GPU1\n", "m.txt:1:1: there is a header row, but no others"},
      {"GPU0 GPU0\n", "m.txt:1:6: column GPU0 occurs twice"},
      {"GPU0 GPU1\nGPU0 X\n", "m.txt:2:1: row GPU0 has 1 cells; there are 2 columns"},
      {"GPU0 GPU1\nGPU0 X PIX PIX\n", "m.txt:2:12: row GPU0 has more cells than the 2 columns"},
      {"GPU0 GPU1\n  GPU0 X FAR\n", "m.txt:2:10: row GPU0: \"FAR\" is not a path type"},
      {"GPU0 GPU1\nGPU0 X NV\n", "m.txt:2:8: row GPU0: \"NV\" is not a path type"},
      {"GPU0 GPU1\nGPU0 PIX X\n", "m.txt:2:1: row GPU0: X is in the column of GPU1"},
      {"GPU0\nGPU0 X\nGPU0 X\n", "m.txt:3:1: row GPU0 occurs twice"},
      {"GPU0\nGPU0 X\nGPU7 X\n", "m.txt:3:1: row GPU7 has no column"},
      {"GPU0 GPU1\nGPU0 X OK\nGPU1 PIX X\n", "cells of topo -m and of topo -p2p are mixed"},
  }));
  const std::string message =
      complaint(ErrorKind::kCorrupt, [&, &t = text] { read_pasted_matrix(t, "m.txt"); });
  CHECK(message.find("read topology m.txt:") == 0);
  CHECK(message.find(said) != std::string::npos);
}

TEST_CASE("cells that have grown together are cut", "[topo]") {
  const PastedMatrix matrix = read_pasted_matrix(
      "GPU0 GPU1 mlx5_0 CPU Affinity NUMA Affinity\nGPU0 XNV12PIX0-3,8 1\nGPU1 NV12 XPH0-115\n",
      "m.txt");
  CHECK(matrix.cells[0] == std::vector<std::string>{"X", "NV12", "PIX"});
  CHECK(matrix.cells[1][2] == "PHB");
  CHECK(matrix.devices[0].cpu_affinity == "0-3,8");
  CHECK(matrix.devices[0].numa_affinity == "1");
  CHECK(matrix.devices[1].cpu_affinity == "0-115");
  CHECK(matrix.notes == std::vector<std::string>{"m.txt:3: \"PH0-115\" is taken as PHB"});
}

TEST_CASE("text that is no matrix is not taken for one", "[topo]") {
  const auto [text, is_matrix] = GENERATE(table<std::string, bool>({
      {"\x1b[4m\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\x1b[0m\n", true},
      {"$ nvidia-smi topo -m\n\tGPU0 CPU Affinity", true},
      {"\tGPU0\tmlx5_bond_a\tibp_x\tCPU Affinity\n", true},
      {"GPU0  0000:0f:00.0  H100\n", false},
      {"GPU0 is hot; CPU too\n", false},
      {"GPU0 X\n", false},
      {"GPU0: NVLink\n", false},
      {"> GPU0 GPU1\n", true},
      {"#  GPU0 GPU1\n", true},
      {"| | GPU0 | GPU1 |\n", true},
      {"from: GPU0\nto: GPU1\n", false},
      {"0 20.6 NIC0 GPU0 GPU1\n1 20.6 NIC1 GPU1 GPU0\n", false},
      {"", false},
  }));
  CHECK(looks_like_matrix(text) == is_matrix);
}

// A matrix of two GPUs and two NICs, each line behind what `label` returns for its number.
template <class Label>
std::string labelled_matrix(const Label& label) {
  const std::array<std::string, 8> lines = {
      "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID",
      "GPU0\t X \tNV4\tSYS\tPIX\t0-15\t0\t\tN/A",
      "GPU1\tNV4\t X \tPIX\tSYS\t16-31\t1\t\tN/A",
      "NIC0\tSYS\tPIX\t X \tSYS\t\t\t\t",
      "NIC1\tPIX\tSYS\tSYS\t X \t\t\t\t",
      "",
      "NIC Legend:",
      "  NIC1: mlx5_3"};
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) text += label(i) + lines[i] + "\n";
  return text;
}

TEST_CASE("a matrix is read behind what other programs put before its lines", "[topo]") {
  const std::string label =
      GENERATE("0: ", "12: ", "[1,0]<stdout>:", "[1,0]<stdout>: ", "[0] ",
               "gpu-node-7: ", "[pod/nccl-test-0/main] ", "nccl-test-0 main ", "worker-1  | ", "> ",
               ">> ", "\xef\xbb\xbf", "\u00a0\u00a0", "[default0]:", "(worker pid=4711) ", "  0| ");
  const PastedMatrix matrix =
      read_pasted_matrix(labelled_matrix([&](size_t) { return label; }), "m.txt");
  CAPTURE(label);
  CHECK(looks_like_matrix(labelled_matrix([&](size_t) { return label; })));
  CHECK(matrix.cells[0] == std::vector<std::string>{"X", "NV4", "SYS", "PIX"});
  CHECK(matrix.devices[1].cpu_affinity == "16-31");
  CHECK(matrix.devices[3].name == "mlx5_3");
}

TEST_CASE("what is before a matrix may change from line to line", "[topo]") {
  const std::array<std::function<std::string(size_t)>, 5> labels = {
      [](size_t line) { return fmt::format("2026-11-26T12:00:0{}.123Z ", line); },
      [](size_t line) { return fmt::format("[2026-11-26 12:00:0{}] pod-0: ", line); },
      [](size_t line) { return fmt::format("Nov 26 12:00:0{} node1 nvidia[77]: ", line); },
      [](size_t line) { return fmt::format("{}:", line + 8); },
      [](size_t line) { return std::string(line == 0 ? "me@host:~$ nvidia-smi topo -m" : ""); }};
  const size_t index = GENERATE(0, 1, 2, 3, 4);
  const PastedMatrix matrix = read_pasted_matrix(labelled_matrix(labels[index]), "m.txt");
  CAPTURE(index);
  CHECK(matrix.cells[1] == std::vector<std::string>{"NV4", "X", "PIX", "SYS"});
  CHECK(matrix.devices[3].name == "mlx5_3");
}

TEST_CASE("of the lines of several ranks the first rank's are read", "[topo]") {
  const std::string text =
      "0: \tGPU0\tGPU1\n1: \tGPU0\tGPU1\n1: GPU0\tX\tSYS\n0: GPU0\tX\tPIX\n"
      "0: GPU1\tPIX\tX\n1: GPU1\tSYS\tX\n";
  const PastedMatrix matrix = read_pasted_matrix(text, "m.txt");
  CHECK(matrix.cells[0][1] == "PIX");
  CHECK(matrix.notes.back() == "m.txt:1: this one of 2 matrices is read");
}

TEST_CASE("rows of a matrix go on in the next line", "[topo]") {
  const std::string text = GENERATE(
      "GPU0 GPU1 NIC0\nNIC1 CPU Affinity\nGPU0 X NV4 PIX\nSYS 0-15 0\nGPU1 NV4 X SYS\nPIX 16-31 "
      "1\nNIC0 PIX SYS X\nSYS\nNIC1 SYS PIX SYS X\n",
      "GPU0\nGPU1 NIC0\nNIC1 CPU Affinity\nGPU0 X NV4 PIX SYS\n0-15 0 N/A\nGPU1 NV4 X\nSYS "
      "PIX\n16-31 1\n\nX = Self\n",
      "> GPU0 GPU1\n> NIC0 NIC1\n> CPU Affinity NUMA Affinity\n> GPU0 X NV4\n> PIX SYS 0-15\n> "
      "0\n> "
      "GPU1 NV4 X SYS PIX 16-31\n> 1\n");
  const PastedMatrix matrix = read_pasted_matrix(text, "m.txt");
  REQUIRE(matrix.devices.size() == 4);
  CHECK(matrix.cells[0] == std::vector<std::string>{"X", "NV4", "PIX", "SYS"});
  CHECK(matrix.cells[1] == std::vector<std::string>{"NV4", "X", "SYS", "PIX"});
  CHECK(matrix.devices[0].cpu_affinity + " " + matrix.devices[0].numa_affinity == "0-15 0");
  CHECK(matrix.devices[1].cpu_affinity + " " + matrix.devices[1].numa_affinity == "16-31 1");
}

TEST_CASE("NICs keep the numbers of their columns", "[topo]") {
  const auto [columns, name, bus] = GENERATE(table<std::string, std::string, std::string>({
      {"NIC0 NIC1 NIC11", "nic11", "c"},
      {"NIC11 NIC0 NIC1", "nic0", "b"},
      {"mlx5_9 mlx5_2 mlx5_0", "nic1", "mlx5_2"},
      {"mlx5_9 mlx5_2 mlx5_0", "mlx5_9", "mlx5_9"},
  }));
  std::string text = "GPU0 " + columns + " CPU Affinity\nGPU0 X SYS PIX NODE\n";
  for (const std::string_view nic : split(columns, ' ')) {
    const char known = nic == "NIC0" ? 'b' : nic == "NIC1" ? 'a' : 'c';
    if (nic.starts_with("NIC")) text += fmt::format("{}: {}\n", nic, known);
  }
  const HostTree host = host_of_matrix(read_pasted_matrix(text, "m.txt"), "m.txt");
  const PartId found = find_part(host, name);
  CAPTURE(text);
  REQUIRE(found != kNoPart);
  CHECK(info_of<PortInfo>(host[found]).name == bus);
}

TEST_CASE("peer states are kept beside the places of GPUs", "[topo]") {
  const std::string places = "GPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\n";
  const std::string states = "GPU0 GPU1\nGPU0 X DR\nGPU1 TNS X\n";
  const auto [text, known] =
      GENERATE_COPY(table<std::string, bool>({{places + states, true}, {states, false}}));
  const HostTree host = host_of_matrix(read_pasted_matrix(text, "m.txt"), "m.txt");
  CHECK(host.places_known == known);
  CHECK(host.peer_states.at({find_part(host, "GPU0"), find_part(host, "GPU1")}) == "DR");
  CHECK(host.peer_states.at({find_part(host, "GPU1"), find_part(host, "GPU0")}) == "TNS");
}

TEST_CASE("of several matrices the first that says where peers lie is read", "[topo]") {
  const std::string lies = "GPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\n";
  const std::string reaches = "GPU0 GPU1\nGPU0 X OK\nGPU1 OK X\n";
  const std::string far = "GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n";
  const auto [text, cell, note] = GENERATE_COPY(table<std::string, std::string, std::string>({
      {lies + far, "PIX", "m.txt:1: this one of 2 matrices is read"},
      {reaches + lies, "PIX", "m.txt:4: this one of 2 matrices is read"},
      {reaches + reaches, "OK", "m.txt:1: this one of 2 matrices is read"},
      {"GPU0 GPU1\n" + far, "SYS", "m.txt:2: this one of 2 matrices is read"},
      {lies + "GPU0 GPU1\nGPU0 ...\n", "PIX", "m.txt:1: this one of 2 matrices is read"},
  }));
  const PastedMatrix matrix = read_pasted_matrix(text, "m.txt");
  CHECK(matrix.cells[0][1] == cell);
  CHECK(matrix.notes.back() == note);
}

TEST_CASE("more NVLinks than a GPU has lead to NVSwitches", "[topo]") {
  const auto [cell, switches] = GENERATE(table<std::string, size_t>({{"NV6", 0}, {"NV7", 1}}));
  std::string text = "GPU0 GPU1 GPU2 GPU3\n";
  for (const int gpu : {0, 1, 2, 3}) {
    text += fmt::format("GPU{}", gpu);
    for (const int peer : {0, 1, 2, 3}) text += " " + (gpu == peer ? "X" : cell);
    text += "\n";
  }
  const HostTree host = host_of_matrix(read_pasted_matrix(text, "m.txt"), "m.txt");
  CHECK(host.all_of(PartKind::kNvSwitch).size() == switches);
  CHECK(host.cross_links().size() == (switches == 0 ? 12 : 4));
}

}  // namespace gxp
