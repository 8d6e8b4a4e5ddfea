// Pickles of protocol 2, which torch.load(weights_only=True) reads: the values that go into
// checkpoints, written in the order of the stack machine. No memo: every value is written out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gxp {

// A container is begun, filled and ended: begin_dict(), then key and value in turn, end_dict().
// A call is put as global(), begin_tuple(), arguments, end_tuple(), reduce().
class PickleWriter {
 public:
  PickleWriter();

  void none();
  void boolean(bool value);
  void integer(int64_t value);
  void real(double value);
  void text(std::string_view value);  // UTF-8, less than 4 GiB
  void global(std::string_view module, std::string_view name);

  void begin_tuple();
  void end_tuple();
  void begin_list();
  void end_list();
  void begin_dict();
  void begin_ordered_dict();  // collections.OrderedDict
  void end_dict();            // of both

  void reduce();      // global and tuple: what the call returns
  void new_object();  // global and tuple: cls.__new__(*tuple)
  void build();       // object and state: the object
  void persistent();  // what names it: a persistent id

  // The whole pickle, of one value. The writer is empty then.
  std::string finish();

 private:
  void opcode(uint8_t code) { bytes_ += char(code); }

  std::string bytes_;
};

}  // namespace gxp
