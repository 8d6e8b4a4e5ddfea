#include "lib/data/data_order.h"

#include "lib/base/error.h"

namespace gxp {
namespace {

std::vector<MixedSource> sources_of(const DataConfig& config, const Dataset& data) {
  const std::vector<uint64_t>& firsts = data.entries();
  GXP_ASSERT(config.weights.size() + 1 == firsts.size());  // a rule of the configuration
  std::vector<MixedSource> sources;
  for (size_t i = 0; i < config.weights.size(); ++i)
    sources.push_back({config.weights[i], firsts[i + 1] - firsts[i]});
  return sources;
}

}  // namespace

DataOrder::DataOrder(const DataConfig& config, uint64_t seed, const Dataset& data)
    : order_(SampleOrder(config.order, seed, data.sample_count())), first_samples_(data.entries()) {
  if (!config.weights.empty())
    order_.emplace<SourceMixer>(sources_of(config, data), config.order, seed);
}

std::vector<double> DataOrder::epochs(uint64_t position) const {
  const auto* mixer = std::get_if<SourceMixer>(&order_);
  if (mixer == nullptr) return {double(position) / double(first_samples_.back())};
  std::vector<double> epochs;
  for (size_t i = 0; i + 1 < first_samples_.size(); ++i)
    epochs.push_back(double(mixer->samples_before(position, i)) /
                     double(first_samples_[i + 1] - first_samples_[i]));
  return epochs;
}

uint64_t DataOrder::at(uint64_t position) const {
  if (const auto* order = std::get_if<SampleOrder>(&order_)) return order->at(position);
  const SourceMixer::Place place = std::get<SourceMixer>(order_).at(position);
  return first_samples_[place.source] + place.sample;
}

}  // namespace gxp
