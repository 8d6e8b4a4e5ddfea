#include "lib/ckpt/torch/pickle_writer.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "lib/ckpt/torch/pickle_opcodes.h"
#include "lib/ckpt/zip/little_endian.h"

namespace gxp {

PickleWriter::PickleWriter() {
  opcode(kPickleProto);
  opcode(2);
}

void PickleWriter::none() { opcode(kPickleNone); }
void PickleWriter::boolean(bool value) { opcode(value ? kPickleNewTrue : kPickleNewFalse); }

void PickleWriter::integer(int64_t value) {
  if (value >= 0 && value <= 0xff) {
    opcode(kPickleBinInt1);
    append_little(bytes_, uint8_t(value));
  } else if (value >= std::numeric_limits<int32_t>::min() &&
             value <= std::numeric_limits<int32_t>::max()) {
    opcode(kPickleBinInt);
    append_little(bytes_, int32_t(value));
  } else {
    opcode(kPickleLong1);
    append_little(bytes_, uint8_t{sizeof(value)});
    append_little(bytes_, value);
  }
}

void PickleWriter::real(double value) {
  opcode(kPickleBinFloat);
  std::string bits;
  append_little(bits, std::bit_cast<uint64_t>(value));
  std::ranges::reverse(bits);
  bytes_ += bits;
}

void PickleWriter::text(std::string_view value) {
  GXP_ASSERT(value.size() <= std::numeric_limits<uint32_t>::max());
  opcode(kPickleBinUnicode);
  append_little(bytes_, uint32_t(value.size()));
  bytes_ += value;
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  opcode(kPickleGlobal);
  bytes_.append(module).append("\n").append(name).append("\n");
}

void PickleWriter::begin_tuple() { opcode(kPickleMark); }
void PickleWriter::end_tuple() { opcode(kPickleTuple); }

void PickleWriter::begin_list() {
  opcode(kPickleEmptyList);
  opcode(kPickleMark);
}
void PickleWriter::end_list() { opcode(kPickleAppends); }

void PickleWriter::begin_dict() {
  opcode(kPickleEmptyDict);
  opcode(kPickleMark);
}
void PickleWriter::begin_ordered_dict() {
  global("collections", "OrderedDict");
  opcode(kPickleEmptyTuple);
  reduce();
  opcode(kPickleMark);
}
void PickleWriter::end_dict() { opcode(kPickleSetItems); }

void PickleWriter::reduce() { opcode(kPickleReduce); }
void PickleWriter::new_object() { opcode(kPickleNewObj); }
void PickleWriter::build() { opcode(kPickleBuild); }
void PickleWriter::persistent() { opcode(kPickleBinPersId); }

std::string PickleWriter::finish() {
  opcode(kPickleStop);
  return std::exchange(bytes_, {});
}

}  // namespace gxp
