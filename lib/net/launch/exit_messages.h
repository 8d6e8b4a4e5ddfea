// The error messages with which the ranks of a failed job end, each printed once. Pure.
//
// A gxp process that fails ends with the line "gxp: error: CAUSE"; one that fails because of rank N
// with "gxp: error: rank N: CAUSE". So many ranks print nearly the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

class ExitMessages {
 public:
  // Keeps `line`, which `rank` has printed, if it is such a line; returns whether it is.
  bool take(int rank, std::string_view line);

  // Whether a line of `rank` was taken.
  [[nodiscard]] bool has(int rank) const { return !cause_of(rank).empty(); }

  // The cause of the first line of `rank`; "": there is none.
  [[nodiscard]] std::string cause_of(int rank) const;

  // The rank because of which `rank` has failed, by its line; nothing: the line names none.
  [[nodiscard]] std::optional<int> blamed_by(int rank) const;

  // The lines taken since the last call, each cause once with all its ranks, as the log writes
  // them: "gxp[rank 0, 2] error CAUSE". The messages of `culprit` come first. Left out: causes that
  // were returned before; lines that quote a rank which has printed the same itself; and, if the
  // culprit was killed, which the launcher reports, lines that say that its connection ended.
  std::vector<std::string> take_new(int culprit, bool was_killed = false);

 private:
  struct Message {
    int rank;
    std::string cause;
    bool printed = false;
  };
  [[nodiscard]] bool is_echo(const Message& message) const;

  std::vector<Message> all_;
};

}  // namespace gxp
