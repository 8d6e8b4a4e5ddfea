// Options as torchrun, DeepSpeed, accelerate, transformers and Megatron-LM spell them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace gxp {

// "--nproc_per_node=2" as "--nproc=2", and other options with '_' for '-', unless a command of `app`
// has the option as it is.
std::string to_own_option(const CLI::App& app, const std::string& argument);

// What to use in place of an option that the command `app` lacks: "; use --set optim.lr=VALUE" for
// --learning-rate, "; use --master HOST:PORT" for --master-addr. "" if nobody calls anything so.
std::string remedy_for_option(const CLI::App& app, const std::string& option);

}  // namespace gxp
