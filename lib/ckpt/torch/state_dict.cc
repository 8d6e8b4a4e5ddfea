#include "lib/ckpt/torch/state_dict.h"

#include <unordered_set>

#include "lib/base/log.h"
#include "lib/ckpt/torch/torch_tensors.h"

namespace gxp {
namespace {

constexpr size_t kMaxStateDepth = 64;
constexpr std::string_view kExtraState = "_extra_state";
constexpr uint64_t kMaxStateVisits = uint64_t{1} << 20;

// One container on the way from the root to where the walk is.
struct StateDictFrame {
  PickleValue container;
  std::string prefix;
  size_t next = 0;
};

bool is_state_container(PickleValue value) {
  return value.is(PickleKind::kDict) || value.is(PickleKind::kList) || value.is(PickleKind::kTuple);
}

std::string key_name(PickleValue key, const std::string& where) {
  if (key.is(PickleKind::kInteger)) return fmt::format("{}", key.integer());
  if (!key.is(PickleKind::kText))
    fail(ErrorKind::kCorrupt, "{}: {} is not a tensor name", where, key.describe());
  if (key.text().empty() || key.text().find('\0') != std::string_view::npos)
    fail(ErrorKind::kCorrupt, "{}: a tensor's name is empty or holds a NUL", where);
  return std::string(key.text());
}

// What a module's get_extra_state() has returned, under the key that torch gives it: of
// TransformerEngine an io.BytesIO with FP8's scaling.
bool is_extra_state(std::string_view name) {
  return name == kExtraState || name.ends_with(fmt::format(".{}", kExtraState));
}

// Numbers, texts and their like, which are passed over.
bool is_plain(PickleValue value) {
  return !is_state_container(value) &&
         (!value.is(PickleKind::kObject) || value.is_call("torch.Size") ||
          value.is_call("torch.device"));
}

}  // namespace

std::vector<StateDictTensor> tensors_in(PickleValue dict, const std::string& where) {
  std::vector<StateDictTensor> found;
  std::unordered_set<std::string> names;
  std::vector<std::string> extra;
  std::vector<StateDictFrame> way = {{to_dict(dict, where), ""}};
  for (uint64_t visits = 0; !way.empty();) {
    StateDictFrame& frame = way.back();
    const bool is_dict = frame.container.is(PickleKind::kDict);
    const size_t i = frame.next++;
    if (i == frame.container.size()) {
      way.pop_back();
      continue;
    }
    if (++visits > kMaxStateVisits)
      fail(ErrorKind::kCorrupt, "{}: more than {} values; parts of it occur again and again", where,
           kMaxStateVisits);
    const PickleValue value = is_dict ? frame.container.value(i) : frame.container.item(i);
    if (is_plain(value)) continue;
    std::string name =
        frame.prefix + (is_dict ? key_name(frame.container.key(i), where) : fmt::format("{}", i));
    if (is_state_container(value)) {
      if (way.size() == kMaxStateDepth)
        fail(ErrorKind::kCorrupt, "{}: nested deeper than {}", where, kMaxStateDepth);
      way.push_back({value, name + "."});
      continue;
    }
    if (!is_tensor(value) && is_extra_state(name)) {
      extra.push_back(std::move(name));
      continue;
    }
    if (!is_tensor(value))
      fail(ErrorKind::kCorrupt, "{}: '{}' is {}", where, name, describe_unknown(value));
    if (!names.insert(name).second)
      fail(ErrorKind::kCorrupt, "{}: tensor '{}' occurs twice", where, name);
    found.push_back({std::move(name), value});
  }
  if (!extra.empty())
    log_info("{}: {} entries that are not tensors are left out, such as {}", where, kExtraState,
             extra.front());
  return found;
}

}  // namespace gxp
