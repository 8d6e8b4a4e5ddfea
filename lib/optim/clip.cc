#include "lib/optim/clip.h"

namespace gxp {

double clip_coefficient(double norm, double clip) {
  if (clip == 0) return 1.0;
  const double coefficient = clip / (norm + 1e-6);
  return coefficient > 1.0 ? 1.0 : coefficient;
}

}  // namespace gxp
