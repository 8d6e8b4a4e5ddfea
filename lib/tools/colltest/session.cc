#include "lib/tools/colltest/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "lib/tools/colltest/runner.h"

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

// Empty without GPUs.
std::vector<std::string> notes_of(const Communicator& communicator, const Session& session) {
  if (session.medium.collectives == CallsOn::kHost) return {};
  std::vector<std::string> notes = {
      fmt::format("Device cuda, engine {}: collectives work on {}", communicator.engine_name(),
                  session.medium.of_collectives()),
      fmt::format("Device cuda, engine {}: sends and receives work on {}",
                  communicator.engine_name(), session.medium.of_messages())};
  for (const CopyRate& copy : session.copies) {
    const std::string what =
        copy.from == copy.rank
            ? "read and written in the memory of its own GPU"
            : fmt::format("out of the mapped memory of rank {}'s GPU", copy.from);
    notes.push_back(
        fmt::format("Copies by rank {}: {:.1f} GB/s {}", copy.rank, copy.bytes_per_s / 1e9, what));
  }
  return notes;
}

}  // namespace

Session run_session(Communicator& communicator, const BenchDevice& place,
                    std::span<const BenchCase> cases, NcclTable table,
                    const std::function<void(const std::string&)>& write) {
  CaseRunner runner(communicator, place, cases, table.options);
  Session session{.ranks = gather_rank_info(communicator, place),
                  .medium = runner.medium(),
                  .copies = runner.measure_copies(),
                  .results = {}};
  table.notes = notes_of(communicator, session);
  table.copy_bytes_per_s = rate_of_gpus(session.copies, session.ranks);
  const auto write_text = [&](const auto& text) {
    if (write && communicator.rank() == 0) write(text());
  };
  const int cycles = table.options.cycles;
  const auto run_sizes = [&](std::span<const BenchCase> sizes) {
    for (const BenchCase& bench : sizes) {
      CaseResult result = runner.run(bench);
      write_text(
          [&] { return nccl_row(table, result, table.options.timestamps ? timestamp() : ""); });
      if (cycles > 0) session.results.push_back(std::move(result));
    }
  };
  while (!cases.empty()) {
    auto operation = front(cases, same_operation);
    cases = cases.subspan(operation.size());
    table.operation = operation.front().operation->name;
    write_text([&] { return nccl_head(table, session.ranks); });
    const size_t first = session.results.size();
    while (!operation.empty()) {
      const auto sizes = front(operation, differ_in_size);
      operation = operation.subspan(sizes.size());
      for (int cycle = 0; cycles == 0 || cycle < cycles; ++cycle) run_sizes(sizes);
    }
    const auto results = std::span<const CaseResult>(session.results).subspan(first);
    write_text([&] { return nccl_remarks(table, results) + nccl_foot(table, results); });
  }
  return session;
}

}  // namespace gxp
