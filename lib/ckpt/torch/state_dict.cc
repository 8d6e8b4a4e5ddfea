#include "lib/ckpt/torch/state_dict.h"

#include <unordered_set>

#include "lib/base/log.h"
#include "lib/ckpt/torch/torch_tensors.h"

namespace gxp {
namespace {

constexpr size_t kMaxStateDepth = 64;
constexpr std::string_view kExtraState = "_extra_state";
constexpr uint64_t kMaxStateVisits = uint64_t{1} << 20;

// A container that the walk has entered.
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

// Walks through the dicts and lists of a state dict, without recursion.
class StateDictWalk {
 public:
  explicit StateDictWalk(const std::string& where) : where_(where) {}

  std::vector<StateDictTensor> run(PickleValue dict) && {
    path_.push_back({to_dict(dict, where_), ""});
    while (!path_.empty()) visit_next();
    if (!extra_.empty())
      log_info("{}: {} entries that are not tensors are left out, such as {}", where_, kExtraState,
               extra_.front());
    return std::move(found_);
  }

 private:
  // The next value of the innermost container, which it leaves behind the last one.
  void visit_next() {
    StateDictFrame& frame = path_.back();
    const size_t i = frame.next++;
    if (i == frame.container.size()) return path_.pop_back();
    if (++visits_ > kMaxStateVisits)
      fail(ErrorKind::kCorrupt, "{}: more than {} values; parts of it occur again and again",
           where_, kMaxStateVisits);
    const bool is_dict = frame.container.is(PickleKind::kDict);
    const PickleValue value = is_dict ? frame.container.value(i) : frame.container.item(i);
    if (is_plain(value)) return;
    const std::string name =
        frame.prefix + (is_dict ? key_name(frame.container.key(i), where_) : fmt::format("{}", i));
    if (is_state_container(value)) return enter(value, name);
    if (is_tensor(value)) return take(value, name);
    if (!is_extra_state(name))
      fail(ErrorKind::kCorrupt, "{}: '{}' is {}", where_, name, describe_unknown(value));
    extra_.push_back(name);
  }

  void enter(PickleValue container, const std::string& name) {
    if (container.is(PickleKind::kDict) && find_member(container, "param_groups", where_) &&
        find_member(container, "state", where_))
      fail(ErrorKind::kCorrupt,
           "{}: '{}' is an optimizer's state_dict(), among the weights; save {{\"model\": "
           "model.state_dict(), \"optimizer\": optimizer.state_dict()}}",
           where_, name);
    if (path_.size() == kMaxStateDepth)
      fail(ErrorKind::kCorrupt, "{}: nested deeper than {}", where_, kMaxStateDepth);
    path_.push_back({container, name + "."});
  }

  void take(PickleValue tensor, const std::string& name) {
    if (!names_.insert(name).second)
      fail(ErrorKind::kCorrupt, "{}: tensor '{}' occurs twice", where_, name);
    found_.push_back({name, tensor});
  }

  const std::string& where_;
  std::vector<StateDictFrame> path_;  // from the root to the innermost container
  uint64_t visits_ = 0;
  std::vector<StateDictTensor> found_;
  std::unordered_set<std::string> names_;
  std::vector<std::string> extra_;  // a module's extra state
};

}  // namespace

std::vector<StateDictTensor> tensors_in(PickleValue dict, const std::string& where) {
  return StateDictWalk(where).run(dict);
}

}  // namespace gxp
