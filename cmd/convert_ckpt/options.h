// The command line of `gxp convert-ckpt`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/ckpt/format.h"
#include "lib/report/report.h"

namespace CLI {
class App;
}

namespace gxp {

// What --dtype may name.
enum class CastTo { kStored, kF32, kBF16, kF16 };
// In the order of the enumerators.
inline constexpr std::array<std::string_view, 4> kCastNames = {"stored", "f32", "bf16", "f16"};

struct ConvertOptions {
  std::string source;
  std::string target;
  std::string to;
  CastTo dtype = CastTo::kStored;
  std::string map;
  std::string merge;
  std::string config;
  std::string max_shard_size;
  uint64_t shards = 0;
  uint64_t step = 0;
  bool inspect = false;
  bool hash = false;
  bool verify = false;
  bool diff = false;
  bool drop_optimizer = false;
  bool dry_run = false;
  bool force = false;
  bool resume = false;
  Format format = Format::kText;
};

// `options` must live until the command's action ends.
void add_convert_options(CLI::App& app, ConvertOptions& options);

// kUsage: options that do not belong together, and what does.
void check(const ConvertOptions& options);

// kUsage: a size that is none.
WriteOptions write_options(const ConvertOptions& options);

// nullptr without --to. kUsage: there is no such format, or it is not written in shards.
const CheckpointFormat* target_format(const ConvertOptions& options);

}  // namespace gxp
