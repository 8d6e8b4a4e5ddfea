// A run of another program that goes on in `gxp train`: what its log says.
#include "tests/catch.h"
#include "tests/cmd/golden_run.h"
#include "tests/cmd/run_gxp.h"

namespace gxp {
namespace {

using Catch::Matchers::Contains;

const std::string kMoved = GXP_TEST_DATA "/ckpt/moved";

// Converts a run of tests/data/ckpt/moved and trains one more step with these settings.
Outcome go_on(const std::string& run, const std::vector<std::string>& sets) {
  const TemporaryDirectory directory;
  const std::string checkpoints = directory / "checkpoints";
  const Outcome converted =
      run_gxp({"convert-ckpt", kMoved + "/" + run, checkpoints, "--to", "gxp"});
  REQUIRE(converted.code == 0);
  make_file(directory / "run.toml",
            "[model]\nvocab_size = 19\ncontext = 8\nhidden = 8\nlayers = 1\nheads = 2\n"
            "[data]\ntrain = [\"" +
                kMoved +
                "/tokens.i32\"]\norder = \"sequential\"\n"
                "[train]\nsteps = 11\nmicro_batch = 12\nthreads = 1\ndevice = \"cpu\"\n"
                "[optim]\nlr = 3e-3\n[lr_schedule]\nname = \"cosine\"\nwarmup_steps = 4\n"
                "total_steps = 29\nmin_lr = 3e-4\n[checkpoint]\ndir = \"" +
                checkpoints + "\"\n");
  return run_gxp(Arguments{"train", directory / "run.toml", "--resume"} + set_all(sets));
}

}  // namespace

TEST_CASE("a run that goes on says what the checkpoint does not record", "[cmd]") {
  const Outcome outcome = go_on("fsdp2", {});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err,
             Contains("does not record samples consumed; assuming 10 steps x 12 = 120"));
  CHECK_THAT(
      outcome.err,
      Contains("not recorded in the checkpoint, taken from this run: model.heads, model.norm_eps, "
               "model.activation, model.attention_scale, model.attention_scale_by_layer, "
               "data.order, data.sequence, train.seed\n"));
  CHECK_THAT(outcome.err, !Contains("warn"));
  CHECK_THAT(go_on("zero2", {}).err, !Contains("does not record samples consumed"));
}

TEST_CASE("a run that goes on warns of an optimizer that is set otherwise than before", "[cmd]") {
  const std::string run = GENERATE("fsdp2", "zero2", "zero3");
  const Outcome outcome = go_on(run, {"optim.beta2=0.999", "optim.eps=1e-6", "optim.lr=1e-3",
                                      "optim.weight_decay=0", "optim.clip=1"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err,
             Contains("warn resume: optim.beta2 was 0.95, is now 0.999; optim.eps was 1e-08, is "
                      "now 1e-06; optim.weight_decay was 0.1, is now"));
  CHECK_THAT(outcome.err, !Contains("optim.clip was"));
  CHECK_THAT(outcome.err, Contains("warn resume: the learning rate was 0.00266 after step 10; "
                                   "[lr_schedule] gives 0.000"));
}

}  // namespace gxp
