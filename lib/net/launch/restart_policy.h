// Whether another attempt follows when a job's ranks have failed. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gxp {

class RestartPolicy {
 public:
  explicit RestartPolicy(int most) : most_(most) {}

  struct Failure {
    int64_t step = 0;           // that the ranks were in; 0: they had not begun one
    int64_t saved = 0;          // the step of the newest checkpoint; 0: there is none
    bool from_outside = false;  // no property of the step: somebody has killed a rank
  };

  // Counts the restart that follows, if one does. Otherwise returns why not: all are used up, or the
  // attempt before has failed in the same step, and no checkpoint has been saved since.
  std::optional<std::string> refuse(const Failure& failure);

  // Of a job that began without this object.
  void set_count(int restarts) { count_ = restarts; }
  // Restarts so far.
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] int most() const { return most_; }

 private:
  int most_;
  int count_ = 0;
  std::optional<Failure> last_;  // of the attempt before, unless it came from outside
};

}  // namespace gxp
