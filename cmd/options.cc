#include "cmd/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "lib/base/near_match.h"

namespace gxp {

void add_format_option(CLI::App& app, Format& format) {
  const auto parse = [&format](const std::string& name) {
    const std::optional<Format> parsed = parse_format(name);
    if (!parsed) {
      const std::vector<std::string> names(kFormatNames.begin(), kFormatNames.end());
      throw CLI::ValidationError(
          "--format", fmt::format("must be one of: {}, is '{}'{}", fmt::join(names, ", "), name,
                                  did_you_mean(name, names)));
    }
    format = *parsed;
  };
  app.add_option_function<std::string>("--format", parse, "How results are written to stdout")
      ->type_name(fmt::format("{}", fmt::join(kFormatNames, "|")))
      ->default_str(std::string(kFormatNames[size_t(format)]));
}

void add_set_option(CLI::App& app, std::vector<std::string>& sets) {
  app.add_option("--set", sets, "Overrides a setting of the run file; may be given often")
      ->type_name("SECTION.KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace gxp
