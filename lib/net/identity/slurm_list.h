// Slurm's two compressed lists: hosts ("host[0-3,7],login") and tasks per host ("2(x3),1").
// Source: Slurm's hostlist syntax (scontrol(1), "show hostnames") and srun(1),
// SLURM_STEP_TASKS_PER_NODE.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gxp {

// The first host: "host[03-12,7],login" gives "host03", "r[1-2]n[5,9]" gives "r1n5".
// Throws kConfig if the list is empty or a bracket is not closed.
std::string first_host(std::string_view hosts);

// One count per host, in the order of the host list: "2(x2),1" gives 2, 2, 1. Throws kConfig.
std::vector<int> tasks_per_host(std::string_view counts);

}  // namespace gxp
