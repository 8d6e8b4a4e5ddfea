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
    Command{"train", "Train a GPT-2 or Llama style model on one rank or many", define_train},
    Command{"allreduce-test", "Run, check and time collectives among ranks", define_allreduce_test},
    Command{"convert-ckpt", "Convert, inspect and verify checkpoints", define_convert_ckpt},
    Command{"memcalc", "Memory per GPU of a model's states or of a run, before there is one",
            define_memcalc},
    Command{"shard-plan",
            "Who owns which parameter in a run, what moves when, and how long it takes",
            define_shard_plan},
    Command{"topo", "See, check and plan over the hardware graph: GPUs, NICs, NUMA, PCIe, NVLink",
            define_topo},
};

}  // namespace

constinit const std::span<const Command> kCommands = kTable;

}  // namespace gxp
