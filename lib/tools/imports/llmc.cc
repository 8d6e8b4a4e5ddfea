// llm.c's command line. Source: llm.c, train_gpt2.cu, error_usage() and main().
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/tools/imports/programs.h"

namespace gxp::llmc {
namespace {

constexpr std::string_view kLauncher = "a launcher's matter";

int64_t count_in(const Importing& in, const char* flag, int64_t preset) {
  const auto number = in.number(flag);
  return number && *number >= 1 && *number < 2e9 && std::floor(*number) == *number
             ? int64_t(*number)
             : preset;
}
double rate_in(const Importing& in) { return in.number("-l").value_or(3e-4); }
int64_t ranks_in(const Importing& in) { return count_in(in, "-pn", count_in(in, "-np", 1)); }

std::string text_in(const Importing& in) { return in.value().get<std::string>(); }

// "d12": 12 layers. GPT-2's sizes, and larger ones of llm.c.
struct Descriptor {
  int64_t layers, channels, heads;
};
constexpr std::array kDescriptors = {Descriptor{6, 384, 6},    Descriptor{12, 768, 12},
                                     Descriptor{24, 1024, 16}, Descriptor{36, 1280, 20},
                                     Descriptor{48, 1600, 25}, Descriptor{60, 1920, 30}};

void take_model(Importing& in, const KeyRule&) {
  const std::string text = text_in(in);
  const std::string word = text.starts_with("gpt2:") ? text.substr(5) : text;
  if (word.ends_with(".bin")) {
    in.map({{"model.init", word}}, "convert-ckpt reads llm.c's .bin");
    return;
  }
  for (const Descriptor& row : kDescriptors) {
    if (word != fmt::format("d{}", row.layers)) continue;
    in.map({{"model.family", "gpt2"},
            {"model.layers", row.layers},
            {"model.hidden", row.channels},
            {"model.heads", row.heads},
            {"model.vocab_size", int64_t{50257}},
            {"model.context", int64_t{1024}}},
           "a descriptor: d12 is 12 layers");
    return;
  }
  in.refuse("a descriptor that llm.c or gxp does not know (gpt3:c768 and the like: give model.*)");
}

void take_total(Importing& in, const KeyRule&) {
  const auto total = to_number(in.value());
  const int64_t micro = count_in(in, "-b", 4);
  const int64_t sequence = count_in(in, "-t", 1024);
  const int64_t ranks = ranks_in(in);
  const double rows = double(micro) * double(sequence) * double(ranks);
  if (total == -1.0)
    in.ignore("-1: no accumulation");
  else if (total && *total >= rows && *total < 1e15 && std::fmod(*total, rows) == 0)
    in.map({{"train.grad_accum", int64_t(*total / rows)}}, "tokens of all ranks");
  else
    in.refuse(fmt::format("tokens: not a multiple of {} x {} x {}", micro, sequence, ranks));
}

void take_recompute(Importing& in, const KeyRule&) {
  constexpr std::array<const char*, 3> kKept = {"all", "norms", "none"};
  const auto level = to_number(in.value());
  if (level != 0.0 && level != 1.0 && level != 2.0)
    in.refuse("0, 1 or 2 was expected");
  else
    in.change({{"train.recompute", "none"}, {"train.keep", kKept[size_t(*level)]}},
              "0: keep all; 1: GELU again; 2: GELU and norms again");
}

void take_stage(Importing& in, const KeyRule&) {
  constexpr std::array<const char*, 4> kStrategies = {"ddp", "zero1", "zero2", "zero3"};
  const auto stage = to_number(in.value());
  if (!stage || *stage < 0 || *stage > 3 || std::floor(*stage) != *stage)
    in.refuse("stages are 0 to 3");
  else
    in.map({{"parallel.strategy", kStrategies[size_t(*stage)]}},
           *stage > 1 ? "llm.c itself falls back to 0 for 2 and 3, with one line" : "");
}

void take_schedule(Importing& in, const KeyRule&) {
  const std::string name = text_in(in);
  if (name == "cosine" || name == "linear" || name == "constant")
    in.map({{"lr_schedule.name", name}});
  else if (name == "wsd")
    in.change({{"lr_schedule.name", "wsd"}, {"lr_schedule.decay_fraction", 0.2}},
              "llm.c falls by 1 - sqrt over the last fifth; gxp linearly");
  else
    in.refuse("unknown");
}

void take_lowest_rate(Importing& in, const KeyRule&) {
  const auto part = to_number(in.value());
  if (part && *part >= 0 && *part <= 1)
    in.map({{"lr_schedule.min_lr", *part * rate_in(in)}}, "a part of the peak");
  else
    in.refuse("a part of the peak from 0 to 1 was expected");
}

void take_steps(Importing& in, const KeyRule& rule) {
  if (to_number(in.value()) == -1.0)
    in.change({}, "-1: one epoch; needs the data");
  else
    in.take_value(rule.setting);
}

bool is_count(const SourceTree& value) {
  const auto number = to_number(value);
  return number && *number >= 1 && *number < 2e9 && std::floor(*number) == *number;
}

// Of what other flags' values depend on.
void take_count(Importing& in, const KeyRule& rule) {
  if (!is_count(in.value()))
    in.refuse("a number from 1 was expected");
  else if (rule.setting.empty())
    in.ignore(rule.note);
  else
    in.take_value(rule.setting, rule.note);
}

void take_ranks(Importing& in, const KeyRule&) {
  if (!is_count(in.value())) {
    in.refuse("a number from 1 was expected");
    return;
  }
  const int64_t here = count_in(in, "-pg", 8);
  const int64_t ranks = ranks_in(in);
  if (ranks <= here)
    in.map({{"--nproc", ranks}}, "of all hosts; at most -pg on each");
  else if (ranks % here == 0)
    in.map({{"--nproc", here}, {"--nnodes", ranks / here}}, "of all hosts; at most -pg on each");
  else
    in.refuse("is no multiple of -pg");
}

void take_mpi_ranks(Importing& in, const KeyRule& rule) {
  if (in.has("-pn"))
    in.ignore("-pn is given");
  else
    in.take_value(rule.setting, "mpirun's");
}

void take_resume(Importing& in, const KeyRule& rule) {
  if (in.is_switched_on()) in.map({{std::string(rule.setting), true}});
}

void take_address(Importing& in, const KeyRule& rule) {
  in.map({{std::string(rule.setting), text_in(in)}});
}

void take_masters(Importing& in, const KeyRule&) {
  if (is_false(in.value()))
    in.change({}, "gxp keeps float32 master weights");
  else
    in.ignore("gxp always does so");
}

constexpr KeyRule kRules[] = {
    {"-i", act::take, "data.train", "a glob"},
    {"-j", act::take, "data.valid", "a glob"},
    {"-e", take_model},
    {"-o", act::take, "checkpoint.dir"},
    {"-lg", act::ignore, "", kLogging},
    {"-n", act::take, "checkpoint.every"},
    {"-nk", act::take, "checkpoint.keep"},
    {"-nm", act::take, "checkpoint.keep_every"},
    {"-y", take_resume, "--resume"},
    {"-b", act::take, "train.micro_batch"},
    {"-t", take_count, "data.sequence"},
    {"-d", take_total},
    {"-x", take_steps, "train.steps"},
    {"-k", take_schedule},
    {"-l", act::take, "optim.lr"},
    {"-u", act::take, "lr_schedule.warmup_steps"},
    {"-q", take_lowest_rate},
    {"-c", act::take, "optim.weight_decay", "matrices only, as gxp"},
    {"-sl", act::refuse_unless_off, "", "no skipping of outliers"},
    {"-sg", act::refuse_unless_off, "", "no skipping of outliers"},
    {"-v", act::take, "train.valid_every"},
    {"-m", act::take, "train.valid_batches"},
    {"-s", act::ignore, "", "gxp generates at the end: --generate"},
    {"-g", act::take, "--generate"},
    {"-h", act::ignore, "", "no HellaSwag"},
    {"-a", act::refuse_unless_off, "", "no overfitting of one batch"},
    {"-f", act::ignore, "", kMeaningless},
    {"-w", take_masters},
    {"-ge", act::ignore, "", kMeaningless},
    {"-r", take_recompute},
    {"-z", take_stage},
    {"-pn", take_ranks},
    {"-np", take_mpi_ranks, "--nproc"},
    {"-pr", act::ignore, "", kLauncher},
    {"-pg", take_count, "", kLauncher},
    {"-pi", act::ignore, "", "mpi, tcp, fs: gxp joins by itself"},
    {"-pm", act::ignore, "", "the name in the usage text; the program itself takes -pi"},
    {"-pf", act::ignore, "", "gxp joins by itself"},
    {"-pp", act::ignore, "", "the name in the usage text; the program itself takes -pf"},
    {"-ps", take_address, "--master"},
    {"(launcher)", act::ignore, "", kLauncher},
    {"*", act::refuse, "", "unknown flag"},
};

void take_batch(Importing& in) {
  ImportedBatch batch{.ranks = ranks_in(in), .sequence = count_in(in, "-t", 1024)};
  batch.sizes = {.micro = count_in(in, "-b", 4), .grad_accum = 1};
  const Value* accumulation = in.result().find("train.grad_accum");
  if (accumulation != nullptr) batch.sizes.grad_accum = std::get<int64_t>(*accumulation);
  batch.sizes.global = batch.sizes.micro * batch.sizes.grad_accum * *batch.ranks;
  const auto total = in.number("-d");
  const bool is_wrong = total && *total != -1 && accumulation == nullptr;
  if (is_wrong) batch.error = "the total is not a multiple";
  if (is_wrong && *total > 0 && *total < 1e15)
    batch.nearest = nearest_triples(int64_t(*total / double(*batch.sequence)), batch.sizes.micro, 1,
                                    *batch.ranks);
  in.describe_batch(std::move(batch));
}

void add_defaults(Importing& in) {
  if (!in.has("-e")) in.set_default("model.init", "gpt2_124M_bf16.bin");
  const std::string shakespeare = "dev/data/tinyshakespeare/tiny_shakespeare_";
  in.set_default("data.train", std::vector<std::string>{shakespeare + "train.bin"});
  in.set_default("data.valid", std::vector<std::string>{shakespeare + "val.bin"});
  in.set_default("train.micro_batch", int64_t{4});
  in.set_default("data.sequence", int64_t{1024});
  in.set_default("optim.lr", 3e-4);
  in.set_default("optim.weight_decay", 0.0);
  in.set_default("lr_schedule.min_lr", rate_in(in));
  if (!in.has("-k")) in.set_default("lr_schedule.name", "cosine");
  in.set_default("train.valid_every", int64_t{20});
  in.set_default("train.valid_batches", int64_t{20});
  in.set_default("checkpoint.keep", int64_t{0});
  in.set_default("train.keep", "norms");
  in.set_default("train.steps", std::nullopt, "one epoch");
  in.set_default("train.precision", "bf16", "bf16, in the usual build");
}

}  // namespace

std::span<const KeyRule> rules() { return kRules; }

void judge(Importing& in) {
  in.judge(kRules, false);
  take_batch(in);
  add_defaults(in);
}

}  // namespace gxp::llmc
