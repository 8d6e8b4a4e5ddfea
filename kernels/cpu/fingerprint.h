// Ops::fingerprint() on the CPU's threads.
#pragma once

#include <cstdint>
#include <span>

#include "lib/device/thread_pool.h"
#include "lib/tensor/tensor.h"

namespace gxp {

uint64_t fingerprint_of(ThreadPool& pool, std::span<const ConstTensor> parts);

}  // namespace gxp
