// Options that several subcommands share. What they fill must live until the command's action ends.
#pragma once

#include <string>
#include <vector>

#include "lib/report/report.h"

namespace CLI {
class App;
}

namespace gxp {

// --format text|csv|json
void add_format_option(CLI::App& app, Format& format);

// --set SECTION.KEY=VALUE, any number of times; for load_config().
void add_set_option(CLI::App& app, std::vector<std::string>& sets);

}  // namespace gxp
