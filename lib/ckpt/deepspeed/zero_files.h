// The files of one DeepSpeed checkpoint.
//
//   DIR/latest                                            the tag, "global_step1000"
//   DIR/TAG/mp_rank_00_model_states.pt                    the module; stages 1 and 2
//   DIR/TAG/zero_pp_rank_R_mp_rank_00_model_states.pt     of each rank; stage 3
//   DIR/TAG/[bf16_]zero_pp_rank_R_mp_rank_00_optim_states.pt
//
// Ranks are numbers, so that rank 10 comes after rank 2. Refused, as gxp does not read them: tensor
// parallel ranks (mp_rank_01), the files of experts and of pipeline stages (layer_*, expp_*), and
// tensors offloaded to NVMe (offloaded_tensors).
// Source: deepspeed 0.19.8, runtime/engine.py (_get_ckpt_name, _get_rank_zero_ckpt_name).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gxp {

struct ZeroFiles {
  std::string directory;                       // DIR/TAG
  std::string module_states = "";              // path of the one below stage 3; "" if there is none
  std::vector<std::string> rank_states = {};   // paths of stage 3's, by rank; possibly none
  std::vector<std::string> optim_states = {};  // paths, by rank; possibly none
};

// The names in a directory, sorted. kIo.
std::vector<std::string> names_in(const std::string& directory);

// Whether it is the name of a file as above, of any rank, supported or not.
bool is_zero_file(std::string_view name);

// The directory of the checkpoint: what the file `latest` in `path` names, or `path` if it has no
// such file. kCorrupt: the file names no plain directory in `path`.
std::string tag_directory(const std::string& path, const std::string& latest);

// kCorrupt: a rank's file is missing or occurs twice, or an unsupported file is present.
ZeroFiles list_zero_files(const std::string& directory);

}  // namespace gxp
