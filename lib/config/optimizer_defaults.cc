#include "lib/config/optimizer_defaults.h"

namespace gxp {
namespace {

// PyTorch's for adam and sgd; of the authors' code for lion (google/automl) and muon
// (KellerJordan).
constexpr OptimizerDefault kDefaults[] = {
    {"adam", "lr", 1e-3},        {"adam", "beta2", 0.999},
    {"adam", "weight_decay", 0}, {"sgd", "lr", 1e-3},
    {"sgd", "weight_decay", 0},  {"lion", "lr", 1e-4},
    {"lion", "beta2", 0.99},     {"lion", "weight_decay", 0},
    {"adafactor", "lr", 1e-3},   {"adafactor", "weight_decay", 0},
    {"muon", "lr", 0.02},        {"muon", "momentum", 0.95},
    {"muon", "nesterov", 1},     {"muon", "adamw_lr_ratio", 0.015},  // 3e-4 for AdamW
};

}  // namespace

std::span<const OptimizerDefault> optimizer_defaults() { return kDefaults; }

}  // namespace gxp
