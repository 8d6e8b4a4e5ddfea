// gxp memcalc --list.
#include "cmd/memcalc_report.h"

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
    models.add_row({std::string(model.name), int64_t(parameter_count(model)), int64_t(model.layers),
                    int64_t(model.hidden), int64_t(model.heads), int64_t(model.key_value_heads),
                    int64_t(model.mlp), int64_t(model.vocabulary), int64_t(model.positions),
                    std::string(model.source)});
  }
}

}  // namespace gxp
