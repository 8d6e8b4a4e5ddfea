#include "cmd/command.h"

#include <array>

namespace gxp {

std::function<int()> define_allreduce_test(CLI::App& app);
std::function<int()> define_convert_ckpt(CLI::App& app);
std::function<int()> define_memcalc(CLI::App& app);
std::function<int()> define_shard_plan(CLI::App& app);
std::function<int()> define_topo(CLI::App& app);
std::function<int()> define_train(CLI::App& app);

namespace {

constexpr std::array kTable = {
    Command{"train", "Train a decoder model on one rank or many", define_train},
    Command{"convert-ckpt", "Convert, inspect, verify and compare checkpoints",
            define_convert_ckpt},
    Command{"memcalc", "Predict a model's or a run's memory per GPU", define_memcalc},
    Command{"shard-plan", "Predict parameter ownership, traffic and step time of a run or a model",
            define_shard_plan},
    Command{"allreduce-test", "Run, check and time collectives among ranks", define_allreduce_test},
    Command{"topo", "Show and check the hardware topology, and plan rings and trees over it",
            define_topo},
};

}  // namespace

constinit const std::span<const Command> kCommands = kTable;

}  // namespace gxp
