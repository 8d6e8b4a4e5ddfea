#include "lib/ckpt/torch/pt_metadata.h"

namespace gxp {
namespace {

constexpr size_t kMaxMetadataText = 4096;

void put_count(PickleWriter& pickle, const char* key, std::optional<uint64_t> count) {
  if (!count) return;
  pickle.text(key);
  pickle.integer(int64_t(*count));
}

void put_pairs(PickleWriter& pickle, const char* key, const KeyValues& pairs) {
  pickle.text(key);
  pickle.begin_dict();
  for (const auto& [name, value] : pairs) {
    pickle.text(name);
    pickle.text(value);
  }
  pickle.end_dict();
}

KeyValues to_pairs(PickleValue dict, const std::string& where) {
  KeyValues pairs;
  to_dict(dict, where);
  for (size_t i = 0; i < dict.size(); ++i)
    pairs.emplace_back(to_text(dict.key(i), where), to_text(dict.value(i), where));
  return pairs;
}

}  // namespace

void put_pt_metadata(PickleWriter& pickle, const NamedTensors& tensors) {
  pickle.begin_dict();
  pickle.text("_metadata");
  pickle.begin_ordered_dict();
  pickle.text("gxp");
  pickle.begin_dict();
  put_count(pickle, "step", tensors.step);
  put_count(pickle, "samples_consumed", tensors.samples_consumed);
  put_pairs(pickle, "config", tensors.config);
  KeyValues state = tensors.state;
  for (auto& pair : to_state(tensors.optimizer)) state.push_back(std::move(pair));
  put_pairs(pickle, "state", state);
  pickle.end_dict();
  pickle.end_dict();
  pickle.end_dict();
  pickle.build();
}

void take_pt_metadata(PickleValue state_dict, const std::string& where, NamedTensors& tensors) {
  if (!state_dict.state().is(PickleKind::kDict)) return;
  const auto metadata = find_member(state_dict.state(), "_metadata", where);
  if (!metadata || !metadata->is(PickleKind::kDict)) return;
  const auto own = find_member(*metadata, "gxp", where);
  if (!own) return;
  const std::string place = where + ": _metadata of gxp";
  if (const auto step = find_member(*own, "step", place)) tensors.step = to_unsigned(*step, place);
  if (const auto samples = find_member(*own, "samples_consumed", place))
    tensors.samples_consumed = to_unsigned(*samples, place);
  tensors.config = to_pairs(member(*own, "config", place), place);
  tensors.state = to_pairs(member(*own, "state", place), place);
  take_record(tensors, place);
}

std::optional<std::string> scalar_text(PickleValue value) {
  switch (value.kind()) {
    case PickleKind::kBool:
      return value.boolean() ? "true" : "false";
    case PickleKind::kInteger:
      return fmt::format("{}", value.integer());
    case PickleKind::kFloat:
      return fmt::format("{}", value.real());
    case PickleKind::kText:
      if (value.text().size() <= kMaxMetadataText) return std::string(value.text());
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace gxp
