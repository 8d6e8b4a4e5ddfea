#include "cmd/command.h"

#include <array>

namespace gxp {

std::function<int()> define_train(CLI::App& app);

namespace {

constexpr std::array kTable = {
    Command{"train", "train a GPT-2 style model on one rank or many", define_train},
};

}  // namespace

constinit const std::span<const Command> kCommands = kTable;

}  // namespace gxp
