// `gxp train --print-launch KIND`: what starts the command on all hosts, as a script or a manifest.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

// What is started, on each of `nnodes` hosts.
struct LaunchedCommand {
  std::vector<std::string> argv;  // "gxp", "train", ...; without the options that say where
  int nproc = 1;
  int nnodes = 1;      // at most, and the spares
  int min_nnodes = 0;  // that suffice; 0: all are needed
  int spares = 0;
  int max_restarts = 0;
  bool uses_gpus = false;
  std::string master;  // HOST:PORT, of which the port counts; "": the default
};

enum class ScriptKind : uint8_t { kSlurm, kKubernetes, kSsh, kMpi };
inline constexpr std::array<std::string_view, 4> kScriptKindNames = {"slurm", "k8s", "ssh", "mpi"};

// Pure. kUsage: what starts the ranks there cannot do what the command asks for.
std::string launch_script(ScriptKind kind, const LaunchedCommand& command);

// `argv` without each of `names`, options that take a value.
std::vector<std::string> without_options(const std::vector<std::string>& argv,
                                         const std::vector<std::string_view>& names);

}  // namespace gxp
