// Two commands made for the tests.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "cmd/command.h"
#include "cmd/options.h"
#include "lib/base/error.h"

namespace gxp {

// Returns the length of its argument + 100 * format + 1000 * number of --set.
inline std::function<int()> define_brew(CLI::App& app) {
  struct Options {
    std::string kind;
    Format format = Format::kText;
    std::vector<std::string> sets;
    int strength = 2;
    bool secret = false;
  };
  auto options = std::make_shared<Options>();  // kept alive by the returned action
  app.add_option("kind", options->kind, "What to brew")->required();
  app.add_option("-s,--strength", options->strength, "Spoons per cup")->capture_default_str();
  app.add_flag("--secret", options->secret, "For the cook only")->group("");
  add_format_option(app, options->format);
  add_set_option(app, options->sets);
  return [options] {
    return int(options->kind.size()) + 100 * int(options->format) +
           1000 * int(options->sets.size());
  };
}

inline std::function<int()> define_fail(CLI::App& app) {
  auto what = std::make_shared<std::string>();  // kept alive by the returned action
  app.add_option("what", *what, "How to fail")->type_name("peer|memory|bug")->required();
  return [what]() -> int {
    if (*what == "peer") fail(ErrorKind::kPeer, "brew: rank {} is gone", 3);
    if (*what == "memory") throw std::bad_alloc();
    throw std::logic_error("boiled over");
  };
}

inline constexpr std::array<Command, 2> kSampleCommands = {
    {{"brew", "Make a hot drink", define_brew}, {"fail", "Fail in a given way", define_fail}}};

}  // namespace gxp
