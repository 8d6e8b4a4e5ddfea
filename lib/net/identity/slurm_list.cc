#include "lib/net/identity/slurm_list.h"

#include <charconv>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr int kMaxHosts = 1 << 20;  // far beyond any cluster; bounds what a bad list can allocate

// Takes a positive number off the front of `text`; 0 if there is none.
int take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return 0;
  text.remove_prefix(size_t(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::string first_host(std::string_view hosts) {
  std::string host;
  for (size_t i = 0; i < hosts.size() && hosts[i] != ','; ++i) {
    if (hosts[i] != '[') {
      host += hosts[i];
      continue;
    }
    const size_t close = hosts.find(']', i);
    if (close == std::string_view::npos)
      fail(ErrorKind::kConfig, "read Slurm's host list '{}': '[' without ']'", hosts);
    host += hosts.substr(i + 1, hosts.find_first_of(",-]", i) - i - 1);
    i = close;
  }
  if (host.empty()) fail(ErrorKind::kConfig, "read Slurm's host list '{}': no first host", hosts);
  return host;
}

std::vector<int> tasks_per_host(std::string_view counts) {
  std::vector<int> result;
  std::string_view rest = counts;
  do {
    const int tasks = take_number(rest);
    const bool repeated = take(rest, "(x");
    const int hosts = repeated ? take_number(rest) : 1;
    const bool well_formed = tasks > 0 && hosts > 0 && (!repeated || take(rest, ")"));
    if (!well_formed || int(result.size()) + hosts > kMaxHosts)
      fail(ErrorKind::kConfig, "read Slurm's tasks per host '{}': expected a form like 2(x3),1",
           counts);
    result.insert(result.end(), size_t(hosts), tasks);
  } while (take(rest, ","));
  if (!rest.empty())
    fail(ErrorKind::kConfig, "read Slurm's tasks per host '{}': '{}' is unexpected", counts, rest);
  return result;
}

}  // namespace gxp
