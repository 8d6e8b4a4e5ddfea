#include "lib/tools/topology/read/sources.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lib/tools/topology/read/topology.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

const std::string kData = std::string(GXP_TEST_DATA) + "/topo/";

// A file of that content, removed at the end.
class PlantedFile {
 public:
  explicit PlantedFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / fmt::format("gxp-source-{}", ::getpid())) {
    std::ofstream(path_) << text;
  }
  ~PlantedFile() { std::filesystem::remove(path_); }
  PlantedFile(const PlantedFile&) = delete;
  PlantedFile& operator=(const PlantedFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("content decides what a file is", "[topo]") {
  const Topology topology = load_topology(kData + "oci-H100-topology.xml");
  CHECK(topology.source == "NCCL topology XML, version 1");
  CHECK(topology.trees.at(0)->all_of(PartKind::kGpu).size() == 8);
  CHECK(topology.hosts.size() == 1);
}

TEST_CASE("what PowerShell writes is read: UTF-16 with a byte order mark", "[topo]") {
  std::string text = "\xff\xfe";
  for (const char c : std::string("\tGPU0\tGPU1\tCPU Affinity\r\nGPU0\t X \tPIX\t0-3\r\n")) {
    text += c;
    text += '\0';
  }
  const PlantedFile file(text);
  CHECK(load_host(file.path()).all_of(PartKind::kGpu).size() == 2);
}

TEST_CASE("a file of rings and trees has no host", "[topo]") {
  const std::string file = kData + "azure-ncv4-graph.xml";
  CHECK(load_topology(file).channel_graphs.size() == 3);
  CHECK(complaint(ErrorKind::kCorrupt, [&] { load_host(file); }).find("NCCL graph XML") !=
        std::string::npos);
}

TEST_CASE("what is no topology is refused, with what it is", "[topo]") {
  const auto [text, said] = GENERATE(table<std::string, std::string>({
      {"", "it is empty"},
      {" \n", "it is empty"},
      {"BZh91AY&SY", "it is packed; unpack it, and give the folder or file"},
      {std::string(257, 'x') + "ustar", "it is packed"},
      {"== Weight between two GPUs ==\n GPU0 GPU1\nGPU0 0 15\n", "output of rocm-smi"},
      {"Sun May 3\n+---+\n| NVIDIA-SMI 580.1  Driver Version: 580.1 |\n",
       "use the output of nvidia-smi topo -m"},
      {"\n==============NVSMI LOG==============\n", "use the output of nvidia-smi topo -m"},
      {"GPU 0: NVIDIA A40 (UUID: GPU-1)\n", "use the output of nvidia-smi topo -m"},
      {"<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n", "use the output of nvidia-smi topo -m"},
      {"n1:7:9 [0] NCCL INFO NET/IB : Using\n", "it is NCCL's log"},
      {"=== System : maxBw 48.0 totalBw 370.8 ===\n", "it is NCCL's log"},
      {"---\n# two\n- topology: a\n  tree:\n", "Slurm's topology.yaml is not supported"},
      {"Machine (504GB total)\n  Package L#0\n", "it is lstopo's text"},
      {"<?xml version=\"1.0\"?>\n<svg width='3'/>", "it is a picture"},
      {"\x89PNG\r\n", "it is a picture"},
      {"00:00.0 Host bridge: Intel\n", "it is lspci's text"},
      {"0000:3b:00.0 3D controller: NVIDIA\n", "it is lspci's text"},
      {"-[0000:00]-+-00.0\n", "it is lspci's text"},
      {"{\n  \"schema\": \"gxp.topo/1\",\n", "it is gxp's JSON"},
      {"kind: ConfigMap\n  topo.xml: |\n    <system version=\"1\"/>\n", "XML inside other text"},
      {"00:0x.0 Host\n", "unrecognised format"},
      {"hello", "unrecognised format: NCCL's topology XML"},
      {"<?xml version=\"1.0\"?><!-- a > b --><html/>", "unrecognised format"},
      {"<!-- no end", "unrecognised format"},
      {"<graphs version=\"7\"/>", ":1:1: <graphs version=\"7\">"},
      {"<!-- x --><system version=\"7\"/>", ":1:11: <system version=\"7\">"},
  }));
  const PlantedFile file(text);
  const std::string message = complaint(ErrorKind::kCorrupt, [&] { load_topology(file.path()); });
  CHECK(message.find("read topology " + file.path()) == 0);
  CHECK(message.find(said) != std::string::npos);
}

TEST_CASE("every prefix of a source is read or refused", "[topo]") {
  const std::string whole = GENERATE(
      as<std::string>(),
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\"><gpu dev=\"0\">"
      "<c2c bw=\"9\" count=\"5\"/></gpu></pci></cpu></system>",
      "<graphs version=\"1\"><graph id=\"0\"><channel><gpu "
      "dev=\"0x1\"/></channel></graph></graphs>",
      "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x1\"><object type=\"NUMANode\" "
      "os_index=\"0\" cpuset=\"0x1\"/></object></topology>",
      "\tGPU0\tNIC0\tCPU Affinity\nGPU0\t X \tPIX\t0-7\nNIC0\tPIX\t X \t\nNIC0: mlx5_4\n",
      "SwitchName=leaf0 Nodes=n[08-10,12]\nSwitchName=top \\\nSwitches=leaf[0-1]\n",
      "message_overhead_us = 1\nfold_gb_per_s = 100\n[hosts]\ncount = 2\ngpus = 4\nnics = 2\n"
      "nic_gb_per_s = 12.5\npcie_gb_per_s = 24\npcie_latency_us = 1\n[network]\nkind = 'switch'\n"
      "latency_us = 2\n");
  for (size_t length = 0; length <= whole.size(); ++length) {
    for (const char* end : {"", "["}) {
      try {
        load_topology({"t", SourceForm::kFile, whole.substr(0, length) + end});
      } catch (const Error& error) {
        CAPTURE(length, error.what());
        CHECK((error.kind() == ErrorKind::kCorrupt || error.kind() == ErrorKind::kConfig));
      }
    }
  }
  CHECK_NOTHROW(load_topology({"t", SourceForm::kFile, whole}));
}

TEST_CASE("a missing file is an input error, an unknown name a wrong command line", "[topo]") {
  const auto [kind, text] = GENERATE(table<ErrorKind, std::string>({{ErrorKind::kIo, "/nowhere/x"},
                                                                    {ErrorKind::kIo, "nothere.xml"},
                                                                    {ErrorKind::kUsage, "dgx"}}));
  CAPTURE(text);
  CHECK(complaint(kind, [&] { load_topology(text); }).find("no such file") != std::string::npos);
}

}  // namespace gxp
