// accelerate's YAML. Source: accelerate 1.15.0, commands/config/config_args.py, commands/launch.py,
// utils/dataclasses.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lib/base/text/ascii.h"
#include "lib/tools/imports/programs.h"

namespace gxp::accelerate {
namespace {

void take_distributed_type(Importing& in, const KeyRule&) {
  const std::string type = to_words(in.value());
  if (type == "MULTI_GPU" || type == "NO")
    in.map({{"parallel.strategy", "ddp"}});
  else if (type == "MULTI_CPU")
    in.map({{"parallel.strategy", "ddp"}, {"train.device", "cpu"}});
  else if (type == "FSDP")
    in.map({}, "see fsdp_config");
  else if (type == "DEEPSPEED")
    in.map({}, "see deepspeed_config");
  else if (is_false(in.value()))  // NO without quotes is YAML's false
    in.map({{"parallel.strategy", "ddp"}});
  else
    in.refuse(type + " is not for gxp");
}

// "no" without quotes is YAML's false.
std::string mixed_precision(const Importing& in) {
  const SourceTree* value = in.find("mixed_precision");
  if (value == nullptr || is_false(*value)) return "no";
  return to_lower_words(*value);
}

void take_mixed_precision(Importing& in, const KeyRule&) {
  const std::string type = mixed_precision(in);
  if (type == "no")
    in.map({{"train.precision", "fp32"}});
  else if (type == "fp16")
    in.map({{"train.precision", "fp16"}});
  else if (type == "bf16")
    in.map({{"train.precision", "bf16"}},
           "FSDP's gradients travel in bf16 there: parallel.reduce_dtype=bf16 gives the same "
           "traffic");
  else if (type == "fp8")
    in.change({{"train.precision", "bf16"}, {"train.matmul", "fp8"}},
              "gxp has one recipe: train.matmul");
  else
    in.refuse("no, fp16, bf16 or fp8 was expected");
}

// fp16: true, before there was mixed_precision.
void take_old_precision(Importing& in, const KeyRule& rule) {
  if (in.has("mixed_precision"))
    in.ignore("mixed_precision is given");
  else if (in.is_switched_on())
    in.map({{"train.precision", std::string(rule.setting)}}, rule.note);
}

int64_t machines(const Importing& in) {
  const double count = in.number("num_machines").value_or(1);
  return count >= 1 && count < 65536 ? int64_t(count) : 1;
}

void take_processes(Importing& in, const KeyRule&) {
  const auto count = to_number(in.value());
  if (!count || *count < 1 || *count > 1e8 || std::floor(*count) != *count)
    in.refuse("a number of ranks was expected");
  else if (int64_t(*count) % machines(in) != 0)
    in.refuse("is not a multiple of num_machines");
  else
    in.map({{"--nproc", int64_t(*count) / machines(in)}},
           "of all machines together: divided by num_machines");
}

void take_machines(Importing& in, const KeyRule&) {
  const auto count = to_number(in.value());
  if (!in.value().is_null() && (!count || *count != double(machines(in))))
    in.refuse("a number of hosts was expected");
  else if (machines(in) == 1)
    in.ignore("one");
  else
    in.map({{"--nnodes", machines(in)}});
}

void take_machine_rank(Importing& in, const KeyRule& rule) {
  if (machines(in) == 1)
    in.ignore("one machine");
  else
    in.take_value(rule.setting);
}

void take_address(Importing& in, const KeyRule&) {
  if (is_false(in.value())) {
    in.ignore("not set");
    return;
  }
  std::string host = to_words(in.value());
  const bool is_bare_ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  if (is_bare_ipv6) host = "[" + host + "]";
  const double port = in.number("main_process_port").value_or(29500);
  in.map({{"--master", fmt::format("{}:{}", host, port)}});
}

void take_port(Importing& in, const KeyRule& rule) {
  const auto port = to_number(in.value());
  if (in.value().is_null() || (port && *port >= 0 && *port < 65536 && std::floor(*port) == *port))
    in.ignore(rule.note);
  else
    in.refuse("a port was expected");
}

void take_gpus(Importing& in, const KeyRule&) {
  const std::string ids = to_words(in.value());
  if (ids == "all" || is_false(in.value()))
    in.ignore("all");
  else
    in.change({}, fmt::format("start gxp with CUDA_VISIBLE_DEVICES={}", ids));
}

void take_device(Importing& in, const KeyRule&) {
  if (in.is_switched_on()) in.map({{"train.device", "cpu"}});
}

// What a DeepSpeed file says must not be said here, too.
bool is_for_file(Importing& in) {
  if (is_for_other_type(in, "DEEPSPEED")) return true;
  if (!in.has("deepspeed_config.deepspeed_config_file")) return false;
  if (in.value() == "auto" || is_false(in.value()))
    in.ignore("deepspeed_config_file is given");
  else
    in.refuse("deepspeed_config_file is given: set it there, as accelerate demands");
  return true;
}

void take_plugin_value(Importing& in, const KeyRule& rule) {
  if (is_for_file(in)) return;
  if (in.value() == "auto")
    in.ignore(rule.note);
  else
    in.take_value(rule.setting);
}

void take_plugin_stage(Importing& in, const KeyRule&) {
  constexpr std::array<const char*, 4> kStrategies = {"ddp", "zero1", "zero2", "zero3"};
  if (is_for_file(in)) return;
  const auto stage = to_number(in.value());
  if (stage && *stage >= 0 && *stage <= 3 && std::floor(*stage) == *stage)
    in.map({{"parallel.strategy", kStrategies[size_t(*stage)]}});
  else
    in.refuse("stages are 0 to 3");
}

double plugin_stage(const Importing& in) {
  return in.number("deepspeed_config.zero_stage").value_or(2);
}

void take_plugin_device(Importing& in, const KeyRule& rule) {
  if (is_for_file(in)) return;
  const std::string device = to_lower_words(in.value());
  const bool is_parameter = rule.setting == "offload.parameters";
  const std::string optimizer = in.word("deepspeed_config.offload_optimizer_device");
  const std::string setting(rule.setting);
  const SourceTree* path = in.find(is_parameter ? "deepspeed_config.offload_param_nvme_path"
                                                : "deepspeed_config.offload_optimizer_nvme_path");
  if (device == "none" || is_false(in.value()))
    in.map({{setting, "none"}});
  else if (is_parameter && plugin_stage(in) != 3)
    in.refuse("parameters are offloaded at stage 3 only");
  else if (is_parameter && (optimizer.empty() || optimizer == "none"))
    in.refuse("gxp offloads parameters only together with the optimizer");
  else if (device == "cpu")
    in.map({{setting, "memory"}});
  else if (device == "nvme" && plugin_stage(in) == 3 && path != nullptr)
    in.map({{setting, "file"}, {"offload.path", to_words(*path)}});
  else
    in.refuse("cpu, none, or at stage 3 nvme with its path, was expected");
}

void take_plugin_export(Importing& in, const KeyRule&) {
  if (is_for_file(in)) return;
  const std::string type = mixed_precision(in);
  if (in.is_switched_on())
    in.map({{"checkpoint.export", type == "fp16" ? "fp16" : type == "no" ? "fp32" : "bf16"}});
}

void take_plugin_file(Importing& in, const KeyRule&) {
  if (is_for_other_type(in, "DEEPSPEED")) return;
  if (in.value().is_string())
    in.map({}, "read, too; the other keys of this block must not repeat it");
  else
    in.refuse("a path was expected");
}

constexpr KeyRule kRules[] = {
    {"compute_environment",
     [](Importing& in, const KeyRule&) {
       if (in.value() == "LOCAL_MACHINE" || in.value().is_null())
         in.ignore("gxp runs where it is started");
       else if (in.value() == "AMAZON_SAGEMAKER")
         in.refuse("SageMaker starts the ranks itself");
       else
         in.refuse("LOCAL_MACHINE was expected");
     }},
    {"distributed_type", take_distributed_type},
    {"mixed_precision", take_mixed_precision},
    {"fp16", take_old_precision, "fp16", kOldSpelling},
    {"num_processes", take_processes},
    {"num_machines", take_machines},
    {"machine_rank", take_machine_rank, "--node-rank"},
    {"main_process_ip", take_address},
    {"main_process_port", take_port, "", "with main_process_ip"},
    {"gpu_ids", take_gpus},
    {"use_cpu", take_device},
    {"debug", act::ignore, "", "logging of another program"},
    {"rdzv_backend", act::ignore, "", "gxp joins by itself"},
    {"rdzv_conf", act::ignore, "", "gxp joins by itself"},
    {"same_network", act::ignore, "", kMeaningless},
    {"main_training_function", act::ignore, "", kMeaningless},
    {"enable_cpu_affinity", act::ignore, "", kAlways},
    {"downcast_bf16", act::refuse_unless_off, "", "for TPUs"},
    {"tpu_name", act::refuse_unless_off, "", "for TPUs"},
    {"tpu_zone", act::refuse_unless_off, "", "for TPUs"},
    {"tpu_vm", act::refuse_unless_off, "", "for TPUs"},
    {"tpu_env", act::refuse_unless_off, "", "for TPUs"},
    {"tpu_use_cluster", act::refuse_unless_off, "", "for TPUs"},
    {"tpu_use_sudo", act::refuse_unless_off, "", "for TPUs"},
    {"command_file", act::refuse_unless_off, "", "for TPUs"},
    {"commands", act::refuse_unless_off, "", "for TPUs"},
    {"dynamo_config.*", act::ignore, "", kNoCompiler},
    {"dynamo_backend", act::ignore, "", kNoCompiler},
    {"mpirun_config.*", act::ignore, "", "start gxp with mpirun"},
    {"ipex_config.*", act::ignore, "", kMeaningless},
    {"fp8_config.*", act::ignore, "", "gxp has one recipe: train.matmul"},
    {"megatron_lm_config.*", act::refuse, "", "Megatron-LM"},
    {"parallelism_config.*", act::refuse_unless_one, "", "tensor, context or sequence parallelism"},
    {"deepspeed_config.deepspeed_config_file", take_plugin_file},
    {"deepspeed_config.zero_stage", take_plugin_stage},
    {"deepspeed_config.gradient_accumulation_steps", take_plugin_value, "train.grad_accum",
     "auto: the training program's"},
    {"deepspeed_config.gradient_clipping", take_plugin_value, "optim.clip", "auto: 1.0, as gxp"},
    {"deepspeed_config.offload_optimizer_device", take_plugin_device, "offload.optimizer"},
    {"deepspeed_config.offload_param_device", take_plugin_device, "offload.parameters"},
    {"deepspeed_config.offload_optimizer_nvme_path", act::ignore, "", "with device nvme"},
    {"deepspeed_config.offload_param_nvme_path", act::ignore, "", "with device nvme"},
    {"deepspeed_config.zero3_save_16bit_model", take_plugin_export},
    {"deepspeed_config.zero3_init_flag", act::ignore, "", kAlways},
    {"deepspeed_config.deepspeed_multinode_launcher", act::ignore, "",
     "a launcher starts the ranks"},
    {"deepspeed_config.deepspeed_hostfile", act::ignore, "", "a launcher starts the ranks"},
    {"deepspeed_config.deepspeed_exclusion_filter", act::ignore, "", "a launcher starts the ranks"},
    {"deepspeed_config.deepspeed_inclusion_filter", act::ignore, "", "a launcher starts the ranks"},
    {"deepspeed_config.deepspeed_moe_layer_cls_names", act::refuse_unless_off, "",
     "no experts in gxp"},
};

void import_plugin(Importing& in) {
  const SourceTree* file = in.find("deepspeed_config.deepspeed_config_file");
  if (file == nullptr || !file->is_string()) {
    in.set_default("parallel.strategy", "zero2");
    return;
  }
  ImportRequest request = in.request();
  request.arguments["mixed_precision"] = mixed_precision(in);
  in.import_deepspeed_file(read_source(in.path_beside(file->get<std::string>())), request);
}

}  // namespace

// A block acts with its distributed_type only.
bool is_for_other_type(Importing& in, std::string_view type) {
  if (in.word("distributed_type") == lower_case(type)) return false;
  in.ignore(fmt::format("for distributed_type {}", type));
  return true;
}

std::span<const KeyRule> rules() {
  static const std::vector<KeyRule> kAll = [] {
    std::vector<KeyRule> all(std::begin(kRules), std::end(kRules));
    all.insert(all.end(), fsdp_rules().begin(), fsdp_rules().end());
    return all;
  }();
  return kAll;
}

void judge(Importing& in) {
  if (const auto ranks = in.number("num_processes"); ranks && *ranks >= 1 && *ranks < 1e8) {
    const int given = std::exchange(in.request().ranks, int(*ranks));
    if (given > 0 && given != int(*ranks))
      in.error(fmt::format("num_processes: is {} here, and {} by --nproc", *ranks, given));
  }
  in.judge(rules(), false);
  if (!in.has("distributed_type"))
    in.error("distributed_type: is missing, which accelerate refuses");
  if (in.word("distributed_type") == "fsdp") add_fsdp_defaults(in);
  if (in.word("distributed_type") == "deepspeed") import_plugin(in);
}

std::string restored_lines(std::string_view text) {
  const std::span<const KeyRule> all = rules();
  const std::string_view line = trimmed(text);
  std::string restored;
  size_t found = 0;
  for (size_t at = 0; at < line.size() && line.find('\n') == std::string_view::npos;) {
    const size_t colon = line.find(':', at);
    const std::string_view word = line.substr(at, colon - at);
    // The longest rule whose last name it is, and the block around that.
    const auto rule = std::ranges::find_if(all, [&](const KeyRule& row) {
      return row.key == word || (row.key.ends_with(word) && row.key.size() > word.size() &&
                                 row.key[row.key.size() - word.size() - 1] == '.');
    });
    const bool is_block = std::ranges::any_of(all, [&](const KeyRule& row) {
      return row.key.substr(0, row.key.find('.')) == word && row.key != word;
    });
    if (colon == std::string_view::npos || (rule == all.end() && !is_block)) {
      restored += line.substr(at);
      break;
    }
    const bool is_inner = !is_block && rule->key != word;
    ++found;
    at = colon + 1;
    const size_t begin = std::min(line.find_first_not_of(' ', at), line.size());
    const size_t end = std::min(line.find_first_of(' ', begin), line.size());
    restored += fmt::format("{}{}:", is_inner ? "  " : "", word);
    if (!is_block) restored += fmt::format(" {}", line.substr(begin, end - begin));
    restored += '\n';
    at = is_block ? begin : std::min(line.find_first_not_of(' ', end), line.size());
  }
  return found >= 2 ? restored : "";
}

}  // namespace gxp::accelerate
