// libgxp_kernel_times.so: the time of each GPU kernel of a process, by CUPTI. CUDA loads it into a
// process with CUDA_INJECTION64_PATH=libgxp_kernel_times.so; at the process's end it writes to the
// file that GXP_KERNEL_TIMES names a JSON list of {"name", "grid", "calls", "seconds",
// "idle_seconds"}: kernels of a name and grid, copies and fills by kind and bytes, with the time in
// which the GPU did nothing before them. Kernels of graphs are counted like others. Tracing costs a
// few microseconds a kernel on the host.
#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Sum {
  uint64_t calls = 0;
  uint64_t nanoseconds = 0;
  uint64_t idle_nanoseconds = 0;
};
struct Interval {
  uint64_t start, end;
  Sum* sum;
};

std::mutex mutex;                                         // of both
std::map<std::pair<std::string, std::string>, Sum> sums;  // by name and grid
std::vector<Interval> intervals;

void check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "";
  cuptiGetResultString(result, &text);
  std::fprintf(stderr, "kernel_times: %s: %s\n", what, text);
}

std::string demangled(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

void add(const std::string& name, const std::string& grid, uint64_t start, uint64_t end) {
  Sum& sum = sums[{name, grid}];
  ++sum.calls;
  sum.nanoseconds += end - start;
  intervals.push_back({start, end, &sum});
}

void find_idle_times() {
  std::ranges::sort(intervals, {}, &Interval::start);
  uint64_t busy_until = intervals.empty() ? 0 : intervals.front().start;
  for (const Interval& interval : intervals) {
    if (interval.start > busy_until) interval.sum->idle_nanoseconds += interval.start - busy_until;
    busy_until = std::max(busy_until, interval.end);
  }
}

void add(const CUpti_Activity& record) {
  if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(record);
    const std::string grid = std::to_string(kernel.gridX) + "x" + std::to_string(kernel.gridY) +
                             "x" + std::to_string(kernel.gridZ);
    add(kernel.name, grid, kernel.start, kernel.end);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
    add("copy of kind " + std::to_string(copy.copyKind), std::to_string(copy.bytes) + " bytes",
        copy.start, copy.end);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto& fill = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
    add("fill", std::to_string(fill.bytes) + " bytes", fill.start, fill.end);
  }
}

constexpr size_t kBufferBytes = size_t{4} << 20;

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t filled) {
  const std::lock_guard lock(mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, filled, &record) == CUPTI_SUCCESS) add(*record);
  std::free(buffer);
}

void write() {
  check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "flush");
  const std::lock_guard lock(mutex);
  find_idle_times();
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [key, sum] : sums) {
    rows.push_back({{"name", demangled(key.first.c_str())},
                    {"grid", key.second},
                    {"calls", sum.calls},
                    {"seconds", double(sum.nanoseconds) * 1e-9},
                    {"idle_seconds", double(sum.idle_nanoseconds) * 1e-9}});
  }
  const char* const path = std::getenv("GXP_KERNEL_TIMES");
  std::FILE* const file = path == nullptr ? stderr : std::fopen(path, "w");
  if (file == nullptr) {
    std::perror("kernel_times: open GXP_KERNEL_TIMES");
    return;
  }
  std::fprintf(file, "%s\n", rows.dump(1).c_str());
  if (file != stderr) std::fclose(file);
}

}  // namespace

extern "C" int InitializeInjection() {
  check(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "register");
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET})
    check(cuptiActivityEnable(kind), "enable");
  std::atexit(write);
  return 1;
}
