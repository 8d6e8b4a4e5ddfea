#include "lib/colltest/session.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

namespace gxp {
namespace {

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

// The cases at the front of `cases` that `same` puts with the first.
template <class Same>
std::span<const BenchCase> front(std::span<const BenchCase> cases, const Same& same) {
  const auto end = std::ranges::find_if_not(
      cases, [&](const BenchCase& bench) { return same(bench, cases.front()); });
  return cases.first(size_t(end - cases.begin()));
}

bool same_operation(const BenchCase& a, const BenchCase& b) { return a.operation == b.operation; }

bool differ_in_size(const BenchCase& a, const BenchCase& b) {
  return a.dtype == b.dtype && a.redop == b.redop && a.root == b.root;
}

// One operation's table on its way.
class Block {
 public:
  Block(const SessionOptions& options, std::string_view operation,
        const std::function<void(const std::string&)>& write)
      : options_(options), table_(options.table), write_(write) {
    table_.operation = operation;
  }

  void open(std::span<const RankInfo> ranks) const { write_(nccl_head(table_, ranks)); }
  void row(const CaseResult& result) const {
    write_(nccl_row(table_, result, table_.timestamps ? timestamp() : ""));
  }
  void close(std::span<const CaseResult> results) const {
    write_(nccl_remarks(table_, results) + nccl_foot(table_, results, options_.min_busbw));
  }

 private:
  const SessionOptions& options_;
  NcclTable table_;
  const std::function<void(const std::string&)>& write_;
};

}  // namespace

Session run_session(Communicator& communicator, Device& device, std::span<const BenchCase> cases,
                    const SessionOptions& options,
                    const std::function<void(const std::string&)>& write) {
  Session session{.ranks = gather_rank_info(communicator), .results = {}};
  CaseRunner runner(communicator, device, cases, options.runner);
  const bool writes = write && communicator.rank() == 0;
  const auto run_sizes = [&](std::span<const BenchCase> sizes, const Block& block) {
    for (const BenchCase& bench : sizes) {
      CaseResult result = runner.run(bench);
      if (writes) block.row(result);
      if (options.cycles > 0) session.results.push_back(std::move(result));
    }
  };
  const auto run_operation = [&](std::span<const BenchCase> operation, const Block& block) {
    while (!operation.empty()) {
      const auto sizes = front(operation, differ_in_size);
      operation = operation.subspan(sizes.size());
      for (int cycle = 0; options.cycles == 0 || cycle < options.cycles; ++cycle)
        run_sizes(sizes, block);
    }
  };
  while (!cases.empty()) {
    const auto operation = front(cases, same_operation);
    cases = cases.subspan(operation.size());
    const Block block(options, operation.front().operation->name, write);
    if (writes) block.open(session.ranks);
    const size_t first = session.results.size();
    run_operation(operation, block);
    if (writes) block.close(std::span(session.results).subspan(first));
  }
  return session;
}

}  // namespace gxp
