// The part of a TransportContext that belongs to the transport verbs: its settings, and what the
// ranks exchange about their ports.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lib/transport/context.h"
#include "lib/transport/verbs/verbs_ports.h"

namespace gxp {

struct VerbsContext {
  VerbsOptions options{};
  // Asked once, where there are ports to choose from; null: the wiring is not known.
  std::function<VerbsPlace()> place{};
  std::vector<VerbsOffer> offers{};  // of all ranks; survey_verbs() gathers them
  bool planned = false;              // the ranks of a job that is only planned have RDMA
};

// The context's own, or the default without one.
inline const VerbsContext& verbs_of(const TransportContext& context) {
  static const VerbsContext kNone;
  return context.verbs == nullptr ? kNone : *context.verbs;
}

// A copy of it in its place, to be changed: contexts that were copied keep what they have.
inline VerbsContext& change_verbs(TransportContext& context) {
  auto changed = std::make_shared<VerbsContext>(verbs_of(context));
  VerbsContext& result = *changed;
  context.verbs = std::move(changed);
  return result;
}

}  // namespace gxp
