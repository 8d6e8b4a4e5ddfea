#include "lib/topo/read/smi_matrix.h"

#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {

TEST_CASE("a broken matrix is an error that says where and why", "[topo]") {
  const auto [text, said] = GENERATE(table<std::string, std::string>({
      {"hello", "m.txt:1:1: there is no row of columns"},
      {"GPU0 GPU1\n", "m.txt:1:1: there are columns, but no rows"},
      {"GPU0 GPU0\n", "m.txt:1:6: column GPU0 occurs twice"},
      {"GPU0 GPU1\nGPU0 X\n", "m.txt:2:1: row GPU0 has 1 cells; there are 2 columns"},
      {"GPU0 GPU1\nGPU0 X PIX PIX\n", "m.txt:2:12: row GPU0 has more cells than the 2 columns"},
      {"GPU0 GPU1\n  GPU0 X FAR\n", "m.txt:2:10: row GPU0: \"FAR\" is no cell"},
      {"GPU0 GPU1\nGPU0 X NV\n", "m.txt:2:8: row GPU0: \"NV\" is no cell"},
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
      {"GPU0  0000:0f:00.0  H100\n", false},
      {"GPU0 X\n", false},
      {"GPU0: NVLink\n", false},
      {"> GPU0 GPU1\n", true},
      {"#  GPU0 GPU1\n", true},
      {"| | GPU0 | GPU1 |\n", true},
      {"", false},
  }));
  CHECK(looks_like_matrix(text) == is_matrix);
}

TEST_CASE("of several matrices the first that says where peers lie is read", "[topo]") {
  const std::string lies = "GPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\n";
  const std::string reaches = "GPU0 GPU1\nGPU0 X OK\nGPU1 OK X\n";
  const std::string far = "GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n";
  const auto [text, cell, note] = GENERATE_COPY(table<std::string, std::string, std::string>({
      {lies + far, "PIX", "m.txt:1: of 2 matrices this one is read"},
      {reaches + lies, "PIX", "m.txt:4: of 2 matrices this one is read"},
      {reaches + reaches, "OK", "m.txt:1: of 2 matrices this one is read"},
      {"GPU0 GPU1\n" + far, "SYS", "m.txt:2: of 2 matrices this one is read"},
      {lies + "GPU0 GPU1\nGPU0 ...\n", "PIX", "m.txt:1: of 2 matrices this one is read"},
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
