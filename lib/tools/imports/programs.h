// The programs whose configurations are imported, one row each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/tools/imports/key_rules.h"

namespace gxp {

struct SourceProgram {
  SourceKind kind;
  std::span<const KeyRule> (*rules)();  // its table of keys
  void (*judge)(Importing& in);
};

// In the order of SourceKind.
std::span<const SourceProgram> source_programs();

// Of each program: its rows, and what judges all keys and what several of them decide together.
namespace deepspeed {
std::span<const KeyRule> rules();
void judge(Importing& in);
// For the files of this program alone: "bfloat16" is read if there is no "bf16".
bool is_brain_float(const Importing& in);
}  // namespace deepspeed
namespace optimizer_keys {  // of optimizer and scheduler, in DeepSpeed
std::span<const KeyRule> rules();
}  // namespace optimizer_keys
namespace zero_keys {  // of zero_optimization, which are half of DeepSpeed's
std::span<const KeyRule> rules();
}  // namespace zero_keys
namespace accelerate {
std::span<const KeyRule> rules();
void judge(Importing& in);
// For the files of this program alone: rows and defaults of fsdp_config, and whether a block is for
// another distributed_type, in which case its key is ignored.
std::span<const KeyRule> fsdp_rules();
void add_fsdp_defaults(Importing& in);
bool is_for_other_type(Importing& in, std::string_view type);
// The YAML in several lines again, where its line ends are lost: each known key, and each key of a
// block indented. "" if `text` is nothing like that.
std::string restored_lines(std::string_view text);
}  // namespace accelerate
namespace torchtitan {
std::span<const KeyRule> rules();
void judge(Importing& in);
// For the files of this program alone: the rows of model, optimizer and lr_scheduler.
std::span<const KeyRule> model_rules();
}  // namespace torchtitan
namespace trainer {
std::span<const KeyRule> rules();
void judge(Importing& in);
// For the files of this program alone: the rows of steps, schedule and optimizer; whether max_steps
// counts, and whether it validates and saves by steps.
std::span<const KeyRule> step_rules();
bool counts_steps(const Importing& in);
bool validates(const Importing& in);
bool saves(const Importing& in);
}  // namespace trainer
namespace llmc {
std::span<const KeyRule> rules();
void judge(Importing& in);
}  // namespace llmc

}  // namespace gxp
