// The state of a {% for %} loop, and its variable `loop`.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "lib/text/jinja/value.h"

namespace gxp {

// Items are taken one by one, and those that `accepts` refuses are left out when they are reached: as
// in Jinja, a loop's body may change what the next ones are tested for. `loop.last` and the like look
// one item ahead, the loop's length takes all.
class JinjaLoop {
 public:
  using Accepts = std::function<bool(const JinjaValue&)>;

  // `accepts` may be empty.
  JinjaLoop(const JinjaValue& items, Accepts accepts);

  // To the next item, the first one at first. False: there is none.
  bool advance();
  [[nodiscard]] const JinjaValue& item() const { return *current_; }

  // loop.NAME. JinjaError: not supported.
  JinjaValue attribute(std::string_view name);

 private:
  std::optional<JinjaValue> take();
  const std::optional<JinjaValue>& peek();
  int64_t length();

  JinjaValue::List items_;
  size_t at_ = 0;
  Accepts accepts_;
  int64_t index_ = -1;
  std::optional<JinjaValue> before_, current_, after_;
};

}  // namespace gxp
