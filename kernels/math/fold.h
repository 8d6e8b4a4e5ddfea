// The arithmetic of reductions (kernels/reduce_op.h), on elements in their computation types: V is
// one of the C++ number types, or a vector of them. Half types are computed as floats; the code
// that stores a result makes every NaN the same one.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/math/host_device.h"

namespace gxp {

template <class V>
struct ElementsOf {
  using Type = std::remove_cvref_t<decltype(V{}[0])>;
};
template <class V>
requires std::is_arithmetic_v<V>
struct ElementsOf<V> {
  using Type = V;
};

struct FoldSum {
  template <class V>
  GXP_HOST_DEVICE V operator()(const V& a, const V& b) const {
    return V(a + b);
  }
};
struct FoldProduct {
  template <class V>
  GXP_HOST_DEVICE V operator()(const V& a, const V& b) const {
    return V(a * b);
  }
};
struct FoldAnd {
  template <class V>
  GXP_HOST_DEVICE V operator()(const V& a, const V& b) const {
    return V(a & b);
  }
};
struct FoldOr {
  template <class V>
  GXP_HOST_DEVICE V operator()(const V& a, const V& b) const {
    return V(a | b);
  }
};
struct FoldXor {
  template <class V>
  GXP_HOST_DEVICE V operator()(const V& a, const V& b) const {
    return V(a ^ b);
  }
};
// 0 or 1; every other number than 0 is true.
template <class Bitwise>
struct FoldLogical {
  template <class V>
  GXP_HOST_DEVICE V operator()(const V& a, const V& b) const {
    if constexpr (std::is_arithmetic_v<V>) {
      return Bitwise()(V(a != 0), V(b != 0));
    } else {
      return bits_as<V>(Bitwise()(a != 0, b != 0)) & 1;
    }
  }
};

// One of two floats, each found with the operands in one order: `Join` puts together their bits,
// which differ in the sign of a zero. A NaN on either side makes a quiet NaN.
template <class Join, class V>
GXP_HOST_DEVICE V join_floats(const V& a, const V& b, const V& ab, const V& ba) {
  using Bits = typename BitsOf<V>::Type;
  const Bits value = Join()(bits_as<Bits>(ab), bits_as<Bits>(ba));
  return ((a != a) | (b != b)) ? a + b : bits_as<V>(value);
}
struct FoldMin {
  template <class V>
  GXP_HOST_DEVICE V operator()(const V& a, const V& b) const {
    if constexpr (std::is_floating_point_v<typename ElementsOf<V>::Type>) {
      return join_floats<FoldOr>(a, b, V(a < b ? a : b), V(b < a ? b : a));
    } else {
      return a < b ? a : b;
    }
  }
};
struct FoldMax {
  template <class V>
  GXP_HOST_DEVICE V operator()(const V& a, const V& b) const {
    if constexpr (std::is_floating_point_v<typename ElementsOf<V>::Type>) {
      return join_floats<FoldAnd>(a, b, V(a > b ? a : b), V(b > a ? b : a));
    } else {
      return a > b ? a : b;
    }
  }
};

// scale() of integers: a factor below 1 divides by round(1 / factor), towards zero; any other
// multiplies by round(factor), wrapping. Divisors 1 and -1 are multiplied by as well, since
// dividing the least integer by -1 would overflow.
struct IntegerScale {
  explicit IntegerScale(double factor)
      : divisor(std::abs(factor) > 0x1p-63 ? std::llround(1 / factor) : 0),
        multiplier(std::llround(factor)) {}
  template <class T>
  GXP_HOST_DEVICE T operator()(T value) const {
    const bool divides = divisor < -1 || divisor > 1;
    return static_cast<T>(divides ? uint64_t(quotient(value))
                                  : uint64_t(value) * uint64_t(multiplier));
  }
  // A GPU divides 64 bits by a function that takes many registers.
  template <class T>
  GXP_HOST_DEVICE int64_t quotient(T value) const {
    if constexpr (sizeof(T) == sizeof(int64_t)) {
      return value / divisor;
    } else if (divisor == int32_t(divisor)) {
      return int32_t(value) / int32_t(divisor);
    } else {
      return int64_t(value == divisor) - int64_t(value == -divisor);  // no value is larger
    }
  }
  int64_t divisor;
  int64_t multiplier;
};

}  // namespace gxp
