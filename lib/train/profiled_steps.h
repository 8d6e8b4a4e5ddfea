// Which steps of a run a GPU's profiler captures: train.profile_steps.
#pragma once

#include <optional>

#include "lib/config/profile_range.h"
#include "lib/device/device.h"

namespace gxp {

// Begins the capture before the first of the steps, or of those that a resumed run still makes, and
// ends it after the last, or when it is destroyed.
class ProfiledSteps {
 public:
  // `device` outlives this. No range: nothing is captured.
  ProfiledSteps(std::optional<ProfileRange> range, Device& device)
      : range_(range), device_(device) {}
  ProfiledSteps(const ProfiledSteps&) = delete;
  ProfiledSteps& operator=(const ProfiledSteps&) = delete;
  ~ProfiledSteps() { end(); }

  // Called before and after each step, while no kernel runs. Throw kDevice.
  void begin_step(int step);
  void end_step(int step);

 private:
  void end() noexcept;

  const std::optional<ProfileRange> range_;
  Device& device_;
  bool profiles_ = false;
};

}  // namespace gxp
