#include "lib/device/stream.h"

namespace gxp {
namespace {

struct HostMark final : TimeMark {
  std::chrono::steady_clock::time_point at;
};

}  // namespace

void Stream::mark(std::unique_ptr<TimeMark>& mark) {
  if (mark == nullptr) mark = std::make_unique<HostMark>();
  dynamic_cast<HostMark&>(*mark).at = std::chrono::steady_clock::now();
}

double Stream::seconds_between(const TimeMark& first, const TimeMark& last) const {
  const auto at = [](const TimeMark& mark) { return dynamic_cast<const HostMark&>(mark).at; };
  return std::chrono::duration<double>(at(last) - at(first)).count();
}

}  // namespace gxp
