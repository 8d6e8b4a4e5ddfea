#include "lib/net/launch/restart_policy.h"

#include <fmt/format.h>

namespace gxp {

std::optional<std::string> RestartPolicy::refuse(const Failure& failure) {
  const bool repeats = !failure.from_outside && last_ && last_->step == failure.step &&
                       failure.saved <= last_->saved;
  last_ = failure.from_outside ? std::nullopt : std::optional(failure);
  if (repeats)
    return failure.step == 0
               ? "two attempts in a row failed before their first step"
               : fmt::format(
                     "two attempts in a row failed in step {}, and no checkpoint was saved "
                     "in between",
                     failure.step);
  if (count_ == most_) return fmt::format("all {} restarts are used up", most_);
  ++count_;
  return std::nullopt;
}

}  // namespace gxp
