#include "cmd/exchange_options.h"

#include <CLI/CLI.hpp>

#include "cmd/options.h"

namespace gxp {

void add_exchange_options(CLI::App& app, ExchangeOptions& options, CLI::Option* run_file) {
  add_under(app, kExchange, [&] {
    CLI::Option* import =
        app.add_option("--import", options.import_path,
                       "Instead of training, turn FILE into a run file: DeepSpeed JSON, accelerate "
                       "YAML, torchtitan TOML, TrainingArguments JSON or llm.c's command line")
            ->type_name("FILE")
            ->excludes(run_file);
    app.add_option(
           "--import-arg", options.arguments,
           "With --import: an argument of the training program that \"auto\" takes, such as "
           "learning_rate=3e-5; may be repeated")
        ->type_name("NAME=VALUE")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->needs(import);
    app.add_option("--export", options.export_to,
                   "Instead of training, write the settings of RUN.toml for another launcher")
        ->type_name("deepspeed")
        ->check([](const std::string& text) {
          return text == "deepspeed" ? "" : "must be deepspeed; it is '" + text + "'";
        })
        ->excludes(import);
    app.add_option("-o,--output", options.output, "Write what --import or --export makes to FILE")
        ->type_name("FILE")
        ->option_text("default stdout");
  });
}

}  // namespace gxp
