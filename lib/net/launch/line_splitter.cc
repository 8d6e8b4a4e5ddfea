#include "lib/net/launch/line_splitter.h"

#include <algorithm>

namespace gxp {

std::optional<std::string> LineSplitter::next() {
  const size_t newline = pending_.find('\n', std::max(start_, searched_));
  size_t end = newline + 1;
  if (newline == std::string::npos) {
    searched_ = pending_.size();
    if (pending_.size() - start_ < kMaxLineBytes) {
      pending_.erase(0, start_);
      searched_ -= start_;
      start_ = 0;
      return std::nullopt;
    }
    end = start_ + kMaxLineBytes;
  }
  std::string line = pending_.substr(start_, end - start_);
  start_ = end;
  return line;
}

std::string LineSplitter::rest() {
  std::string rest = pending_.substr(start_);
  *this = LineSplitter();
  return rest;
}

}  // namespace gxp
