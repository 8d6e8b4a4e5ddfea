#include "lib/train/run_data.h"

namespace gxp {
namespace {

std::unique_ptr<const Dataset> open_valid(RunEncoder& encoder) {
  const DataConfig& data = encoder.run().data;
  if (!data.valid.empty())
    return std::make_unique<const Dataset>(data.valid, encoder, "data.valid");
  if (data.validation_split == 0) return nullptr;
  return std::make_unique<const Dataset>(data.train, encoder, "data.train",
                                         DocumentPart::kValidation);
}

}  // namespace

RunData open_data(const RunConfig& config) {
  RunEncoder encoder(config);
  const auto part = config.data.validation_split > 0 ? DocumentPart::kTraining : DocumentPart::kAll;
  return {std::make_unique<const Dataset>(config.data.train, encoder, "data.train", part),
          open_valid(encoder)};
}

std::unique_ptr<const Dataset> open_valid(const RunConfig& config) {
  RunEncoder encoder(config);
  return open_valid(encoder);
}

RunConfig with_data(RunConfig config, const RunData& data) {
  const auto has_documents = [](const auto& each) { return each && each->has_documents(); };
  const bool has_any = has_documents(data.train) || has_documents(data.valid);
  config.data.documents =
      has_any && !config.data.cross_documents ? RowDocuments::kApart : RowDocuments::kNotApart;
  return config;
}

}  // namespace gxp
