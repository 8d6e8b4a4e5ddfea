// DeepSpeed's optimizer and scheduler. Source: DeepSpeed 0.19.8, runtime/engine.py and
// runtime/lr_schedules.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/config/settings.h"
#include "lib/tools/imports/programs.h"

namespace gxp::optimizer_keys {
namespace {

constexpr std::string_view kForeignParameter = "unknown to this optimizer";

// optim.name for optimizer.type; "": gxp has none. DeepSpeed takes its own names in any case.
std::string optimizer_of(const Importing& in) {
  const std::string type = in.word("optimizer.type");
  const bool is_plain =
      in.has("optimizer.params.adam_w_mode") && !in.is_on("optimizer.params.adam_w_mode");
  if (type == "adam" && is_plain) return "adam";
  if (type == "adam" || type == "adamw") return "adamw";
  return type == "sgd" || type == "lion" || type == "muon" ? type : "";
}

void take_optimizer(Importing& in, const KeyRule&) {
  const std::string name = optimizer_of(in);
  const std::string group = "one group of all parameters: decay_vectors";
  if (name.empty()) {
    const bool is_text = in.value().is_string();
    in.refuse("gxp has no " + (is_text ? in.value().get<std::string>() : to_line(in.value())));
  } else if (name == "muon") {
    in.change({{"optim.name", name}},
              "lr of the AdamW part becomes optim.adamw_lr_ratio; check which tensors each takes");
  } else {
    const bool is_adam = in.word("optimizer.type") == "adam";
    in.map(
        {{"optim.name", name}, {"optim.decay_vectors", true}},
        is_adam ? "type Adam means decoupled decay unless adam_w_mode is false; " + group : group);
  }
}

// Keys of an optimizer block without a type, which DeepSpeed does not read.
bool is_without_type(Importing& in) {
  if (in.has("optimizer.type")) return false;
  in.ignore("without optimizer.type DeepSpeed does not read it");
  return true;
}

// A parameter of the optimizer, which must have it.
void take_parameter(Importing& in, const KeyRule& rule) {
  if (is_without_type(in)) return;
  const Setting& setting = *find_setting("optim", rule.setting.substr(rule.setting.find('.') + 1));
  const std::string optimizer = optimizer_of(in);
  const bool is_adam_only = rule.setting == "optim.eps";
  const bool lacks = !setting.owners.empty() &&
                     std::ranges::find(setting.owners, optimizer) == setting.owners.end();
  if (lacks || (is_adam_only && !optimizer.starts_with("adam")))
    in.refuse(kForeignParameter);
  else
    in.take_value(rule.setting, rule.note);
}

void take_betas(Importing& in, const KeyRule&) {
  if (is_without_type(in)) return;
  const SourceTree& value = in.value();
  const bool is_pair = value.is_array() && value.size() == 2;
  const std::string optimizer = optimizer_of(in);
  const ConvertedValue first = convert_to("optim.beta1", is_pair ? value[0] : value);
  const ConvertedValue second = convert_to("optim.beta2", is_pair ? value[1] : value);
  if (optimizer == "sgd")
    in.refuse(kForeignParameter);
  else if (!is_pair || !first.value || !second.value)
    in.refuse("two numbers from 0 to below 1 were expected");
  else
    in.map({{"optim.beta1", *first.value}, {"optim.beta2", *second.value}});
}

void take_adam_rate(Importing& in, const KeyRule&) {
  const auto rate = to_number(in.value());
  const auto shared = in.number("optimizer.params.muon_lr");
  const auto muon = shared ? shared : in.number("optimizer.params.lr");
  if (optimizer_of(in) != "muon" || !rate || !muon || *rate <= 0 || *muon <= 0)
    in.refuse("unknown to this optimizer, or without its lr");
  else
    in.map({{"optim.adamw_lr_ratio", *rate / *muon}}, "a multiple of optim.lr");
}

// The schedules that gxp has: DeepSpeed's name, gxp's, and whether the scheduler has a total.
struct ScheduleRow {
  std::string_view theirs, ours;
  bool has_total, has_rate;
};
constexpr std::array kSchedules = {ScheduleRow{"warmuplr", "warmup", false, true},
                                   ScheduleRow{"warmupdecaylr", "linear", true, true},
                                   ScheduleRow{"warmupcosinelr", "cosine", true, false}};

const ScheduleRow* schedule_of(const Importing& in) {
  const auto* const row =
      std::ranges::find(kSchedules, in.word("scheduler.type"), &ScheduleRow::theirs);
  return row == kSchedules.end() ? nullptr : row;
}

void take_schedule(Importing& in, const KeyRule&) {
  const ScheduleRow* row = schedule_of(in);
  if (row == nullptr) {
    in.refuse("gxp has no " +
              (in.value().is_string() ? in.value().get<std::string>() : to_line(in.value())));
    return;
  }
  const std::vector<ImportedSetting> settings = {{"lr_schedule.name", std::string(row->ours)}};
  if (in.word("scheduler.params.warmup_type") == "linear")
    in.map(settings);
  else
    in.change(settings, "warmup_type is log by default in DeepSpeed; gxp warms up linearly");
}

// DeepSpeed up to 0.16 warms up over 2 steps for 0, too; newer releases refuse that.
bool is_below_two(const SourceTree& value) {
  return to_number(value) == 0.0 || to_number(value) == 1.0;
}

// Parameters of a scheduler: `take` judges those of one that gxp has.
void judge_schedule(Importing& in, const KeyRule& rule, void (*take)(Importing&, const KeyRule&)) {
  if (schedule_of(in) == nullptr)
    in.refuse("belongs to a scheduler that gxp has not");
  else
    take(in, rule);
}

void take_schedule_value(Importing& in, const KeyRule& rule) {
  judge_schedule(in, rule, [](Importing& it, const KeyRule& row) {
    if (it.is_auto() && it.value().is_null())  // the training program's steps
      it.change({}, "the run's train.steps: give it");
    else if (row.key.ends_with("total_num_steps") && !schedule_of(it)->has_total)
      it.refuse("unknown to this scheduler");
    else if (row.key.ends_with("warmup_num_steps") && is_below_two(it.value()))
      it.change({{std::string(row.setting), int64_t{2}}},
                "DeepSpeed warms up over 2 steps at least");
    else
      it.take_value(row.setting, row.note);
  });
}

void take_lowest_rate(Importing& in, const KeyRule& rule) {
  judge_schedule(in, rule, [](Importing& it, const KeyRule&) {
    if (is_false(it.value()))
      it.ignore("0, as gxp");
    else
      it.refuse("gxp warms up from 0");
  });
}

void take_highest_rate(Importing& in, const KeyRule& rule) {
  judge_schedule(in, rule, [](Importing& it, const KeyRule&) {
    const auto rate = it.number("optimizer.params.lr");
    if (!schedule_of(it)->has_rate)
      it.refuse("unknown to this scheduler");
    else if (!rate)
      it.take_value("optim.lr");
    else if (to_number(it.value()) == rate)
      it.ignore("equals optim.lr");
    else
      it.take_value("optim.lr", "differs from optimizer.params.lr: the scheduler wins in DeepSpeed",
                    true);
  });
}

double rate_of(const Importing& in) { return in.number("optimizer.params.lr").value_or(1e-3); }

void take_cosine_end(Importing& in, const KeyRule& rule) {
  judge_schedule(in, rule, [](Importing& it, const KeyRule&) {
    const auto ratio = to_number(it.value());
    if (schedule_of(it)->has_rate || !ratio || *ratio < 0 || *ratio > 1)
      it.refuse("unknown to this scheduler, or not from 0 to 1");
    else
      it.map({{"lr_schedule.min_lr", *ratio * rate_of(it)}}, "a part of optim.lr");
  });
}

void take_warmup_type(Importing& in, const KeyRule& rule) {
  judge_schedule(in, rule,
                 [](Importing& it, const KeyRule&) { it.ignore("part of scheduler.type"); });
}

constexpr KeyRule kRules[] = {
    {"optimizer.type", take_optimizer},
    {"optimizer.legacy_fusion", act::ignore, "", kMeaningless},
    {"optimizer.params.lr", take_parameter, "optim.lr"},
    {"optimizer.params.muon_lr", take_parameter, "optim.lr"},
    {"optimizer.params.adam_lr", take_adam_rate},
    {"optimizer.params.betas", take_betas},
    {"optimizer.params.eps", take_parameter, "optim.eps"},
    {"optimizer.params.weight_decay", take_parameter, "optim.weight_decay"},
    {"optimizer.params.momentum", take_parameter, "optim.momentum"},
    {"optimizer.params.dampening", take_parameter, "optim.dampening"},
    {"optimizer.params.nesterov", take_parameter, "optim.nesterov"},
    {"optimizer.params.ns_method", act::ignore, "", "gxp has one Newton-Schulz iteration"},
    {"optimizer.params.adam_w_mode", act::ignore, "", "decides between adamw and adam"},
    {"optimizer.params.bias_correction",
     [](Importing& in, const KeyRule&) {
       if (is_true(in.value()))
         in.ignore(kAlways);
       else
         in.refuse("gxp always corrects the bias of Adam's moments");
     }},
    {"optimizer.params.amsgrad", act::refuse_unless_off, "", "no AMSGrad"},
    {"optimizer.params.maximize", act::refuse_unless_off, "", "gxp minimises"},
    {"optimizer.params.torch_adam", act::ignore, "", kMeaningless},
    {"optimizer.params.fp32_optimizer_states", act::ignore, "", "see optim.state_dtype"},
    {"optimizer.params.fused", act::ignore, "", kMeaningless},
    {"optimizer.params.foreach", act::ignore, "", kMeaningless},
    {"optimizer.params.set_grad_none", act::ignore, "", kMeaningless},
    {"optimizer.params.max_grad_norm", act::refuse, "",
     "DeepSpeed refuses it too: gradient_clipping"},
    {"optimizer.params.*", act::refuse, "", kForeignParameter},
    {"scheduler.type", take_schedule},
    {"scheduler.params.warmup_min_lr", take_lowest_rate},
    {"scheduler.params.warmup_max_lr", take_highest_rate},
    {"scheduler.params.warmup_num_steps", take_schedule_value, "lr_schedule.warmup_steps"},
    {"scheduler.params.total_num_steps", take_schedule_value, "lr_schedule.total_steps"},
    {"scheduler.params.warmup_min_ratio", take_lowest_rate},
    {"scheduler.params.cos_min_ratio", take_cosine_end},
    {"scheduler.params.warmup_type", take_warmup_type},
    {"scheduler.params.last_batch_iteration",
     [](Importing& in, const KeyRule&) {
       if (to_number(in.value()) == -1)
         in.ignore("-1: from the beginning");
       else
         in.refuse("a run of gxp goes on from its checkpoint");
     }},
    {"scheduler.params.*",
     [](Importing& in, const KeyRule& rule) {
       judge_schedule(
           in, rule, [](Importing& it, const KeyRule&) { it.refuse("unknown to this scheduler"); });
     }},
};

}  // namespace

std::span<const KeyRule> rules() { return kRules; }

}  // namespace gxp::optimizer_keys
