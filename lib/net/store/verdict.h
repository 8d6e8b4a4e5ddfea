// Why a job ends: the first cause, the same for all ranks; and the hooks by which rank 0's process
// helps the store's server to find it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gxp {

struct FailureVerdict {
  int rank = 0;        // the culprit
  std::string reason;  // in words that follow "rank 2: "
};

// One rank's answer to an inquiry or a survey.
struct RankAnswer {
  // kLeft: it has said goodbye. kAbsent: it has not joined, or is lost; of surveys.
  enum class Kind { kState, kSilent, kLeft, kAbsent };
  Kind kind = Kind::kSilent;
  std::string state;  // the bytes that its Store::on_inquiry() gave
};

struct Finding {
  FailureVerdict verdict;
  bool settled = true;  // false: ask again, as ranks may be on their way
};

// Both are called on the server's thread, must return soon and must not throw. Either may be empty.
struct DiagnosisHooks {
  // From the answers by rank; `asked_by` is the rank that has waited too long. Nothing if no answer
  // explains it.
  std::function<std::optional<Finding>(const std::vector<RankAnswer>&, int asked_by)> diagnose;
  // The last operation of a rank whose connection has ended, in words; "" if unknown.
  std::function<std::string(int rank)> describe_lost;
};

}  // namespace gxp
