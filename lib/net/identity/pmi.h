// PMI-1, the protocol between process managers and their ranks: lines of text over a socket that
// the rank inherits (PMI_FD). Enough of it to pass one text from rank 0 to all, which needs no MPI
// library. Hydra (MPICH, Intel MPI) and `srun --mpi=pmi2` answer it. Source: Balaji et al., "PMI: A
// Scalable Parallel Process-Management Interface for Extreme-Scale Systems", EuroMPI 2010; the
// requests as MPICH's simple PMI client sends them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/deadline.h"

namespace gxp {

// Called once by every rank, with the number of its inherited socket, which stays open. Rank 0
// gives `text`, without white space, up to 900 characters; other ranks' texts are ignored. Returns
// rank 0's text when all ranks have called it. Nothing if the process manager no longer listens,
// because an earlier program of this rank has used the protocol. Throws kPeer: its answer is not
// PMI-1, is an error, or is late, for example if a rank does not arrive.
std::optional<std::string> pass_by_pmi(int socket, bool is_rank_0, std::string_view text,
                                       Deadline deadline);

}  // namespace gxp
