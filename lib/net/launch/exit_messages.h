// What the ranks of a job that fails say at their end, told once.
//
// A gxp process that fails ends with the line "gxp: error: CAUSE"; one that fails because of rank N
// with "gxp: error: rank N: CAUSE". So many ranks say much the same. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gxp {

class LastWords {
 public:
  // Keeps `line`, said by `rank`, if it is such a line; returns whether it is.
  bool take(int rank, std::string_view line);

  // The lines kept since the last call, each cause once with all ranks that gave it: "[rank 0, 2]
  // gxp: error: CAUSE". Those of `culprit` come first. Left out: what was told before, and what
  // quotes a rank that has said the same itself.
  std::vector<std::string> tell(int culprit);

 private:
  struct Words {
    int rank;
    std::string cause;
    bool told = false;
  };
  [[nodiscard]] bool is_echo(const Words& words) const;

  std::vector<Words> all_;
};

}  // namespace gxp
