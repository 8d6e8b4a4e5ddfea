// How far a conversion is, on a terminal: one line on stderr that is written over.
#pragma once

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// The same tensors; reading one shows, at most five times a second, the bytes read so far, their
// share, the rate and the estimated rest: "converted 1.2 GiB of 4.1 GiB, 812 MiB/s, eta 4s". As they
// are where stderr is no terminal. The line goes when all is read, or with the last reader.
NamedTensors with_progress(NamedTensors tensors);

}  // namespace gxp
