// GGUF files written by hand, byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

// The types of values, as the file numbers them.
namespace gguf_type {
enum : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kText, kArray, kU64, kI64, kF64 };
}

// Each function appends and returns the whole, so that calls chain.
class GgufBytes {
 public:
  template <class Number>
  GgufBytes& number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  GgufBytes& text(std::string_view text) {
    number(uint64_t{text.size()});
    bytes_ += text;
    return *this;
  }
  GgufBytes& head(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    bytes_ += "GGUF";
    return number(version).number(tensors).number(keys);
  }
  // A key's name and the type of its value, which follows.
  GgufBytes& key(std::string_view name, uint32_t type) { return text(name).number(type); }
  GgufBytes& u32(std::string_view name, uint32_t value) {
    return key(name, gguf_type::kU32).number(value);
  }
  GgufBytes& f32(std::string_view name, float value) {
    return key(name, gguf_type::kF32).number(value);
  }
  GgufBytes& string(std::string_view name, std::string_view value) {
    return key(name, gguf_type::kText).text(value);
  }
  // The array's elements follow.
  GgufBytes& array(uint32_t type, uint64_t count) { return number(type).number(count); }
  GgufBytes& tensor(std::string_view name, const std::vector<uint64_t>& fastest_first,
                    uint32_t type, uint64_t offset) {
    text(name).number(uint32_t(fastest_first.size()));
    for (const uint64_t size : fastest_first) number(size);
    return number(type).number(offset);
  }
  GgufBytes& append(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }
  GgufBytes& align(size_t alignment = 32) {
    while (bytes_.size() % alignment != 0) bytes_ += '\0';
    return *this;
  }
  GgufBytes& data(size_t count) {
    bytes_.append(count, 'x');
    return *this;
  }
  operator std::string() const { return bytes_; }  // NOLINT: the bytes are what it is

 private:
  std::string bytes_;
};

}  // namespace gxp
