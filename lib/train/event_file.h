// TensorBoard's event files, as `tensorboard --logdir DIRECTORY` reads them: the scalars of a run by
// step and time of day. Records are TFRecords of tensorflow.Event (event.proto, summary.proto).
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/fd.h"
#include "lib/train/metrics.h"

namespace gxp {

// Tags: train/loss, train/grad_norm, train/lr, train/tokens_per_s; of a GPU train/mfu; valid/loss.
// Values are f32; those that are not finite stay so, and TensorBoard marks them.
//   Errors  kIo.
class EventFile {
 public:
  // Makes events.out.tfevents.TIME.HOST.gxp; one of this second goes on. Where `steps_done` is not
  // 0, readers are told to drop later steps of older files.
  EventFile(const std::string& directory, int64_t steps_done);
  // All of a step in one write.
  void write(const StepMetrics& metrics);
  // The run has gone back: readers drop the steps after `steps_done`.
  void go_back_to(int64_t steps_done);

  // Of an earlier run.
  static void remove_all(const std::string& directory);

 private:
  void append(const std::string& records);

  std::string path_;
  Fd file_;
};

}  // namespace gxp
