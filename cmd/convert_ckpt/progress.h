// Shows a conversion's progress on a terminal: one line on stderr that is overwritten.
#pragma once

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// The same tensors; reading one shows, at most five times a second, the bytes read so far, their
// share, the rate and the estimated rest: "converted 1.2 GiB of 4.1 GiB, 812 MiB/s, eta 4s". The
// tensors unchanged if stderr is not a terminal. The line goes when all is read, or with the last
// reader.
NamedTensors with_progress(NamedTensors tensors);

}  // namespace gxp
