// The optimizers: the state that each keeps per parameter, the inputs of its update, and all other
// facts except its arithmetic, which is in lib/optim. An optimizer is a row in optimizers.inc and a
// file in lib/optim; settings, rules, messages, the step program, checkpoints, memcalc and tests
// read the table. Pure.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/arch/optim_config.h"
#include "lib/base/dtype.h"
#include "lib/base/range.h"
#include "lib/base/schema.h"

namespace gxp {

// One kind of state.
struct KeptState {
  std::string_view name;  // its buffer's: "first moments"
  std::string_view role;  // the checkpoint's word for it: "adam_m"
  // The shape that is kept for a tensor; empty if none is, as for a frozen one.
  std::vector<size_t> (*shape)(const UnitSpec& unit, const TensorSpec& tensor);
  bool of_all = true;       // one element per element of every tensor that is trained
  bool everywhere = false;  // replicated: too small to shard, and not shaped like the parameter
  DType dtype = DType::kF32;
  // Elements of a tensor, from its first one on, that share an element of the state; the last ones
  // may be fewer. kStateBlock for the scales of 8-bit codes, whose `shape` counts the blocks.
  size_t block = 1;

  // State that is kept once per block of elements.
  [[nodiscard]] Range of(const Range& elements) const {
    const size_t begin = elements.begin / block;
    return {begin, (elements.end() + block - 1) / block - begin};
  }
};

struct OptimizerSpec {
  std::vector<KeptState> kept;  // in the order in which lib/optim/optimizer.h takes them
  // Whether an update needs the whole tensor, which ranks that hold shards of it gather first.
  // nullptr: it needs none.
  bool (*needs_unsharded)(const UnitSpec& unit, const TensorSpec& tensor) = nullptr;
  // Bytes of workspace for such a tensor, a multiple of 8.
  size_t (*workspace_bytes)(const TensorSpec& tensor) = nullptr;
};

// Nothing is kept of frozen tensors. kConfig if optim.name is unknown.
OptimizerSpec make_optimizer_spec(const OptimConfig& optim);

// Elements of a tensor that no border between ranks or between operations may cut: the largest
// block.
size_t block_of(const OptimizerSpec& optimizer);

// Whether an update needs any of the unit's tensors whole, and the most workspace for one.
bool needs_unsharded(const OptimizerSpec& optimizer, const UnitSpec& unit);
size_t workspace_bytes(const OptimizerSpec& optimizer, const UnitSpec& unit);

// Outputs divided by inputs of a block's matrix.
double outputs_per_input(const Architecture& architecture, const TensorSpec& matrix);

// A default that differs from OptimConfig's initialiser, which is AdamW's.
struct OptimizerDefault {
  std::string_view key;    // in the section [optim]
  std::string_view value;  // as TOML writes it
};

struct OptimizerRow {
  std::string_view name;  // optim.name
  // The state depends on the settings: without momentum, SGD keeps none.
  OptimizerSpec (*spec)(const OptimConfig& optim);
  std::string_view rule_in_words = {};  // for the manual, after the name; "": nothing
  std::vector<OptimizerDefault> defaults = {};
  // The settings of [optim] that it has and not all optimizers have.
  std::vector<std::string_view> keys = {};
  std::vector<SettingRule<OptimConfig>> rules = {};

  [[nodiscard]] bool has(std::string_view key) const;
};

const std::vector<OptimizerRow>& optimizers();

// kConfig, with all names, if the name is unknown.
const OptimizerRow& find_optimizer(std::string_view name);
// The optimizers that have a setting of [optim] that not all have; none if all have it.
std::vector<std::string_view> optimizers_with(std::string_view key);

}  // namespace gxp
