// gxp memcalc --list.
#include "cmd/memcalc/report.h"

namespace gxp {

void add_published_models(Report& report) {
  Table& models = report.add_table("models", {{"name"},
                                              {"parameters"},
                                              {"layers"},
                                              {"hidden"},
                                              {"heads"},
                                              {"key_value_heads", "kv heads"},
                                              {"mlp"},
                                              {"vocabulary"},
                                              {"positions"},
                                              {"source"}});
  for (const PublishedModel& model : published_models()) {
    models.add_row(model.name, parameter_count(model), model.layers, model.hidden, model.heads,
                   model.key_value_heads, model.mlp, model.vocabulary, model.positions,
                   model.source);
  }
}

void add_fitting_models(Report& report, Training training, const std::vector<int>& gpus,
                        const MemcalcView& view) {
  Table& fits =
      report.add_table("fits", {{"name"},
                                {"parameters"},
                                {"gpus"},
                                {"stage", "lowest stage that fits"},
                                {"total_bytes", "states " + view.unit.name, view.unit.style}});
  for (const PublishedModel& model : published_models()) {
    training.parameters = parameter_count(model);
    training.others = other_parameter_count(model);
    for (const int count : gpus) {
      const auto bytes = [&](int stage) {
        return model_states(training, {.stage = stage, .gpus = count}).total();
      };
      int stage = 0;
      while (stage < kMostStage && bytes(stage) > *view.limit_bytes) ++stage;
      const bool found = bytes(stage) <= *view.limit_bytes;
      fits.add_row(model.name, training.parameters, count, found ? Cell(int64_t{stage}) : Cell(),
                   bytes(stage));
    }
  }
}

}  // namespace gxp
