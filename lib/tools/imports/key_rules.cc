#include "lib/tools/imports/key_rules.h"

#include <fmt/format.h>

namespace gxp::act {

void take(Importing& in, const KeyRule& rule) { in.take_value(rule.setting, rule.note); }

void take_changed(Importing& in, const KeyRule& rule) {
  in.take_value(rule.setting, rule.note, true);
}

void ignore(Importing& in, const KeyRule& rule) { in.ignore(rule.note); }

void refuse(Importing& in, const KeyRule& rule) { in.refuse(rule.note); }

void refuse_unknown(Importing& in, const KeyRule& rule) {
  in.refuse(std::string(rule.note) + in.nearest_key());
}

void refuse_unless_off(Importing& in, const KeyRule& rule) {
  if (is_false(in.value()))
    in.ignore("off: nothing to do");
  else
    in.refuse(rule.note);
}

void refuse_unless_one(Importing& in, const KeyRule& rule) {
  if (to_number(in.value()) == 1 || is_false(in.value()))
    in.ignore("1: off");
  else
    in.refuse(rule.note);
}

void refuse_block(Importing& in, const KeyRule& rule) {
  const std::string name = in.name();
  const std::string_view block = std::string_view(name).substr(0, name.find('.'));
  const std::string enabled = fmt::format("{}.enabled", block);
  if (name == enabled)
    refuse_unless_off(in, rule);
  else if (in.is_on(enabled))
    in.ignore(fmt::format("with {}", enabled));
  else
    in.ignore("its block is off");
}

}  // namespace gxp::act
