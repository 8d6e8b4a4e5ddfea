#include "lib/collective/compress/compressed.h"

#include <array>

#include "lib/collective/compress/codec.h"
#include "lib/collective/compress/power_sgd.h"
#include "lib/collective/compress/quantized.h"
#include "lib/collective/compress/top_k.h"

namespace gxp {
namespace {

using Made = std::unique_ptr<CompressedAllReduce>;

struct Row {
  CompressionMethod method;
  Made (*make)(const CompressionOptions&, const BufferShape&, HostGroups&, Device&);
};

constexpr std::array kOthers = {
    Row{{"top_k", "the largest elements with their places; the rest waits"},
        [](const CompressionOptions& options, const BufferShape& shape, HostGroups& groups,
           Device& device) -> Made {
          return std::make_unique<TopKAllReduce>(options, shape, groups, device);
        }},
    Row{{"power_sgd", "matrices as products of two thin ones; the rest waits"},
        [](const CompressionOptions& options, const BufferShape& shape, HostGroups& groups,
           Device& device) -> Made {
          return std::make_unique<PowerSgdAllReduce>(options, shape, groups, device);
        }},
};

std::vector<CompressionMethod> list_methods() {
  std::vector<CompressionMethod> methods;
  for (const Codec& codec : codecs()) methods.push_back({codec.name, codec.summary});
  for (const Row& row : kOthers) methods.push_back(row.method);
  return methods;
}

void check(const CompressionOptions& options) {
  if (!(options.top_k_fraction > 0 && options.top_k_fraction <= 1)) {
    fail(ErrorKind::kConfig, "compress: top_k_fraction {} is not in (0, 1]",
         options.top_k_fraction);
  }
  if (options.power_sgd_rank < 1)
    fail(ErrorKind::kConfig, "compress: power_sgd_rank {} is below 1", options.power_sgd_rank);
  if (options.piece_bytes == 0) fail(ErrorKind::kConfig, "compress: piece_bytes is 0");
}

}  // namespace

std::span<const CompressionMethod> compression_methods() {
  static const std::vector<CompressionMethod> methods = list_methods();
  return methods;
}

std::unique_ptr<CompressedAllReduce> make_compressed_all_reduce(const CompressionOptions& options,
                                                                const BufferShape& shape,
                                                                HostGroups& groups,
                                                                Device& device) {
  check(options);
  if (const Codec* codec = find_codec(options.method))
    return std::make_unique<QuantizedCollectives>(*codec, options, shape, groups, device);
  for (const Row& row : kOthers) {
    if (row.method.name == options.method) return row.make(options, shape, groups, device);
  }
  std::string names;
  for (const CompressionMethod& method : compression_methods())
    names += (names.empty() ? "" : ", ") + std::string(method.name);
  fail(ErrorKind::kConfig, "compress with {}: no such method; use one of {}", options.method,
       names);
}

}  // namespace gxp
