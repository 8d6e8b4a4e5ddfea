// What other programs call gxp's settings, for the answer to a name that gxp does not know.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

// "; gxp calls it optim.lr" for learning_rate; "; did you mean 'lr_schedule.warmup_steps'?" for a key
// of another section; "" if nobody calls a setting so.
std::string setting_called(std::string_view key);

// "; gxp calls it [optim]" for optimizer; "" likewise.
std::string section_called(std::string_view section);

// "optim.lr" for learning_rate, lr or learning-rate; "" likewise, or if it is more than one setting.
std::string setting_for_option(std::string_view option);

}  // namespace gxp
