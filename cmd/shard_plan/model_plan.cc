#include "cmd/shard_plan/model_plan.h"

#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "lib/base/error.h"
#include "lib/tools/planner/cluster_links.h"
#include "lib/tools/planner/model_file.h"
#include "lib/tools/topology/model/cluster.h"
#include "lib/tools/topology/read/cluster_file.h"

namespace gxp {
namespace {

// What a question points to.
struct Subject {
  PublishedModel model;
  Hardware hardware;
  int most_gpus = 0;  // of a cluster file; 0: any number
};

bool is_file(const std::string& text) {
  return text.ends_with(".toml") || text.find('/') != std::string::npos;
}

PublishedModel find_model(const std::string& name) {
  if (!names_model_file(name)) return find_published_model(name);
  const ModelFile file = read_model_file(name);
  if (!file.shape)
    fail(ErrorKind::kUsage,
         "plan {}: weights show the number of parameters, not the model's shape; give its "
         "config.json, or use gxp memcalc",
         name);
  if (!file.architecture.empty())
    fail(ErrorKind::kUsage,
         "plan {}: it is {}, and steps are predicted for language models; give the config.json "
         "of one, or use gxp memcalc for the model states",
         name, file.architecture);
  return *file.shape;
}

Subject find_subject(const std::string& model, const ModelPlanOptions& options) {
  Subject subject{.model = find_model(model), .hardware = {}};
  if (options.cluster.empty())
    fail(ErrorKind::kUsage,
         "plan {}: its time depends on the hardware; add --cluster with a name that --help shows, "
         "or a cluster file",
         model);
  if (!is_file(options.cluster)) {
    if (!options.gpu.empty())
      fail(ErrorKind::kUsage, "--gpu is for a cluster file; {} has its own GPU", options.cluster);
    subject.hardware = find_hardware(options.cluster);
    return subject;
  }
  if (options.gpu.empty())
    fail(ErrorKind::kUsage, "--cluster {}: a cluster file does not name its GPUs; add --gpu",
         options.cluster);
  const Cluster cluster(load_cluster(options.cluster));
  subject.hardware = {"", &find_gpu(options.gpu), links_of(cluster)};
  subject.most_gpus = cluster.gpus();
  return subject;
}

// kUsage if the batch cannot be dealt out.
void set_batch(const ModelPlanOptions& options, TrainPlan& plan) {
  if (options.global_batch == 0 || options.search) return;
  const uint64_t each = plan.micro_batch * uint64_t(std::max(1, plan.replicas()));
  if (uint64_t(options.global_batch) % each != 0)
    fail(ErrorKind::kUsage,
         "--global-batch {}: must be a multiple of {}, the sequences that {} copies of the model "
         "take at once; change --micro-batch",
         options.global_batch, each, plan.replicas());
  plan.accumulation = uint64_t(options.global_batch) / each;
}

TrainPlan plan_of(const ModelPlanOptions& options, const Subject& subject) {
  TrainPlan plan = options.plan;
  const int all = subject.most_gpus > 0 ? subject.most_gpus : 8;
  plan.gpus = options.gpus > 0 ? options.gpus : all;
  if (subject.most_gpus > 0 && plan.gpus > subject.most_gpus)
    fail(ErrorKind::kUsage, "--gpus {}: the cluster has {}", plan.gpus, subject.most_gpus);
  plan.sequence = options.sequence > 0 ? uint64_t(options.sequence)
                                       : std::min<uint64_t>(subject.model.positions, 8192);
  if (plan.accumulation > 1 && options.global_batch > 0)
    fail(ErrorKind::kUsage, "--accumulate follows from --global-batch; leave one of them out");
  set_batch(options, plan);
  return plan;
}

// Sequences of a step, for a search: those asked for, or of the plan as given.
uint64_t batch_of(const ModelPlanOptions& options, const TrainPlan& plan) {
  if (options.global_batch > 0) return uint64_t(options.global_batch);
  return plan.sequences_per_step();
}

}  // namespace

int plan_model(const std::string& model, const ModelPlanOptions& options, Format format) {
  const Subject subject = find_subject(model, options);
  const TrainCase question{&subject.model, &subject.hardware, &find_software(options.software),
                           plan_of(options, subject)};
  check(question);
  const uint64_t limit =
      options.limit.empty() ? subject.hardware.gpu->memory_bytes : read_limit(options.limit);
  Report report{.schema = "gxp.model-plan/1"};
  report.facts = {{{"model"}, model},
                  {{"gpu"}, std::string(subject.hardware.gpu->name)},
                  {{"software"}, std::string(question.software->name)}};
  add_limit_rule(report, options.limit);
  if (options.search) {
    add_search(report, question, batch_of(options, question.plan), limit);
  } else {
    add_plan(report, question, limit);
  }
  print(report, format);
  return kExitOk;
}

}  // namespace gxp
