#include "lib/train/rank_zero.h"

#include <string>

#include "lib/base/error.h"
#include "lib/collective/communicator.h"
#include "lib/collective/gather_texts.h"

namespace gxp {
namespace {

// The error's kind as a digit, then its text; "": there was none.
std::string outcome_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return char('0' + int(error.kind())) + std::string(error.what());
  }
  return "";
}

}  // namespace

void do_on_rank_zero(Communicator& communicator, const std::function<void()>& act) {
  const std::string mine = communicator.rank() == 0 ? outcome_of(act) : "";
  const std::string outcome = gather_texts(communicator, mine)[0];
  if (outcome.empty()) return;
  const int kind = outcome[0] - '0';
  const bool known = kind >= 0 && kind <= int(ErrorKind::kInternal);
  throw Error(known ? ErrorKind(kind) : ErrorKind::kPeer, outcome.substr(1));
}

}  // namespace gxp
