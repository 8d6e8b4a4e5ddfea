// The linear program behind plans: the largest total amount of several routes that share
// capacities, and the price of a unit of each capacity.
//
//   most sum of x[w], where sum over w of uses[w][c] x[w] <= capacity[c] for each c, and x >= 0
//
// Routes are added one by one (column generation: Dantzig & Wolfe, Operations Research 8(1), 1960);
// the primal simplex method with an explicit inverse goes on from where it stood. At the optimum,
// the prices prove it: each route costs at least 1, and all capacities together cost as much as the
// sum; a further route can raise the sum only if it costs less than 1. Ties, which hosts are full
// of, are broken by a relative change of capacities of less than 1e-6, which the results do not
// contain.
//   Cost   m^2 a step for m capacities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gxp {

class PackingProgram {
 public:
  // Capacities are > 0.
  explicit PackingProgram(std::vector<double> capacities);

  // The capacities that one unit of the route uses, some perhaps several times; at least one.
  void add_route(std::span<const uint32_t> uses);
  [[nodiscard]] size_t routes() const { return routes_.size(); }
  // The price of each capacity, at least 0.
  [[nodiscard]] const std::vector<double>& prices() const { return prices_; }
  // The amount of each route; together they keep within the capacities.
  [[nodiscard]] std::vector<double> amounts() const;

 private:
  [[nodiscard]] double price_of(size_t route) const;
  [[nodiscard]] bool improve();
  void enter(int64_t column);
  void find_prices();
  [[nodiscard]] double inverse(size_t row, size_t column) const {
    return inverse_[row * capacities_.size() + column];
  }
  [[nodiscard]] std::vector<double> direction_of(int64_t column) const;

  struct Use {
    uint32_t capacity;
    double times;
  };
  std::vector<double> capacities_;
  std::vector<std::vector<Use>> routes_;
  std::vector<int64_t> basis_;   // by row: a route, or ~c for the slack of capacity c
  std::vector<double> inverse_;  // of the basis
  std::vector<double> values_;   // of the basis, with the changed capacities
  std::vector<double> prices_;
};

}  // namespace gxp
