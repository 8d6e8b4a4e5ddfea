// Every standard header that kernels use: they come before the target is set (isa.h).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>

#if defined(__x86_64__)
#include <immintrin.h>
#endif
