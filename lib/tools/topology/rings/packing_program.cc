#include "lib/tools/topology/rings/packing_program.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr double kSmall = 1e-9;
constexpr int kMaxStepsPerRow = 50;  // a bound for what rounding could repeat

// Between 0 and 1, different for each.
double fraction_of(size_t index) {
  const double golden = double(index + 1) * 0.6180339887498949;
  return golden - double(int64_t(golden));
}

}  // namespace

PackingProgram::PackingProgram(std::vector<double> capacities)
    : capacities_(std::move(capacities)), prices_(capacities_.size(), 0) {
  const size_t rows = capacities_.size();
  inverse_.resize(rows * rows, 0);
  for (size_t row = 0; row < rows; ++row) {
    GXP_ASSERT(capacities_[row] > 0);
    basis_.push_back(~int64_t(row));
    inverse_[row * rows + row] = 1;
    values_.push_back(capacities_[row] * (1 + 1e-7 * fraction_of(row)));
  }
}

void PackingProgram::add_route(std::span<const uint32_t> uses) {
  GXP_ASSERT(!uses.empty());
  std::map<uint32_t, double> times;
  for (const uint32_t capacity : uses) times[capacity] += 1;
  routes_.emplace_back();
  for (const auto& [capacity, count] : times) routes_.back().push_back({capacity, count});
  for (size_t step = 0; step < kMaxStepsPerRow * capacities_.size(); ++step) {
    if (!improve()) return;
  }
}

double PackingProgram::price_of(size_t route) const {
  double price = 0;
  for (const Use& use : routes_[route]) price += prices_[use.capacity] * use.times;
  return price;
}

// Takes in what raises the sum most by the unit.
bool PackingProgram::improve() {
  double most = kSmall;
  std::optional<int64_t> best;
  for (size_t route = 0; route < routes_.size(); ++route) {
    if (const double gain = 1 - price_of(route); gain > most) {
      most = gain;
      best = int64_t(route);
    }
  }
  for (size_t capacity = 0; capacity < capacities_.size(); ++capacity) {
    if (const double gain = -prices_[capacity]; gain > most) {
      most = gain;
      best = ~int64_t(capacity);
    }
  }
  if (best) enter(*best);
  return best.has_value();
}

std::vector<double> PackingProgram::direction_of(int64_t column) const {
  std::vector<double> direction(capacities_.size());
  for (size_t row = 0; row < capacities_.size(); ++row) {
    if (column < 0) {
      direction[row] = inverse(row, size_t(~column));
      continue;
    }
    for (const Use& use : routes_[size_t(column)]) {
      direction[row] += inverse(row, use.capacity) * use.times;
    }
  }
  return direction;
}

void PackingProgram::enter(int64_t column) {
  const size_t rows = capacities_.size();
  const std::vector<double> direction = direction_of(column);
  size_t leaving = rows;
  double step = std::numeric_limits<double>::infinity();
  for (size_t row = 0; row < rows; ++row) {
    if (direction[row] <= kSmall) continue;
    const double room = values_[row] / direction[row];
    if (room < step) {
      step = room;
      leaving = row;
    }
  }
  GXP_ASSERT(leaving < rows);  // every route uses a capacity, so the sum is bounded
  for (size_t i = 0; i < rows; ++i) inverse_[leaving * rows + i] /= direction[leaving];
  for (size_t row = 0; row < rows; ++row) {
    if (row == leaving || direction[row] == 0) continue;
    for (size_t i = 0; i < rows; ++i) {
      inverse_[row * rows + i] -= direction[row] * inverse_[leaving * rows + i];
    }
    values_[row] = std::max(0.0, values_[row] - step * direction[row]);
  }
  values_[leaving] = step;
  basis_[leaving] = column;
  find_prices();
}

void PackingProgram::find_prices() {
  const size_t rows = capacities_.size();
  std::ranges::fill(prices_, 0);
  for (size_t row = 0; row < rows; ++row) {
    if (basis_[row] < 0) continue;
    for (size_t i = 0; i < rows; ++i) prices_[i] += inverse_[row * rows + i];
  }
}

// The basis with the capacities as they are; what rounding has left above them is taken off.
std::vector<double> PackingProgram::amounts() const {
  const size_t rows = capacities_.size();
  double largest = 0;
  std::vector<double> amounts(routes_.size(), 0);
  for (size_t row = 0; row < rows; ++row) {
    if (basis_[row] < 0) continue;
    double amount = 0;
    for (size_t i = 0; i < rows; ++i) amount += inverse(row, i) * capacities_[i];
    amounts[size_t(basis_[row])] = amount;
    largest = std::max(largest, amount);
  }
  std::vector<double> used(rows, 0);
  for (size_t route = 0; route < routes_.size(); ++route) {
    if (amounts[route] < 1e-6 * largest) amounts[route] = 0;
    for (const Use& use : routes_[route]) used[use.capacity] += amounts[route] * use.times;
  }
  double over = 1;
  for (size_t i = 0; i < rows; ++i) over = std::max(over, used[i] / capacities_[i]);
  for (double& amount : amounts) amount /= over;
  return amounts;
}

}  // namespace gxp
