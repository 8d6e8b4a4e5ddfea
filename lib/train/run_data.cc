#include "lib/train/run_data.h"

#include "lib/program/run_plan.h"

namespace gxp {
namespace {

std::unique_ptr<const Dataset> open(const RunConfig& config, const std::vector<std::string>& paths,
                                    const std::string& setting) {
  return std::make_unique<const Dataset>(paths, int(row_positions(config)), config.model.vocab_size,
                                         setting, config.data.tokenizer);
}

}  // namespace

RunData open_data(const RunConfig& config) {
  return {open(config, config.data.train, "data.train"),
          config.data.valid.empty() ? nullptr : open_valid(config)};
}

std::unique_ptr<const Dataset> open_valid(const RunConfig& config) {
  return open(config, config.data.valid, "data.valid");
}

RunConfig with_data(RunConfig config, const RunData& data) {
  const auto has_documents = [](const auto& each) { return each && each->has_documents(); };
  config.data.packed =
      !config.data.cross_documents && (has_documents(data.train) || has_documents(data.valid));
  return config;
}

}  // namespace gxp
