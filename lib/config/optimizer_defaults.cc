#include "lib/config/optimizer_defaults.h"

namespace gxp {
namespace {

// PyTorch's for adam and sgd; Lion's are its authors' (google/automl, lion).
constexpr OptimizerDefault kDefaults[] = {
    {"adam", "lr", 1e-3},    {"adam", "beta2", 0.999},    {"adam", "weight_decay", 0},
    {"sgd", "lr", 1e-3},     {"sgd", "weight_decay", 0},  {"lion", "lr", 1e-4},
    {"lion", "beta2", 0.99}, {"lion", "weight_decay", 0},
};

}  // namespace

std::span<const OptimizerDefault> optimizer_defaults() { return kDefaults; }

}  // namespace gxp
