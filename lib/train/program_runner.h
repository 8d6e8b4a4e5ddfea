// Executes a step program: lanes become streams, the edges between them become events.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lib/device/device.h"
#include "lib/program/step_program.h"
#include "lib/zero/program_memory.h"

namespace gxp {

// Everything is made in the constructor; run() allocates nothing.
//   Threads  one at a time; operations run on the streams' threads.
//   Errors   run() throws the first error of an operation; the operations that would have followed
//   on
//            that lane are skipped.
class ProgramRunner {
 public:
  // `bind` gives, for each operation, the function that carries it out. `program` must outlive the
  // runner.
  using Bind = std::function<std::function<void()>(const Op&)>;
  ProgramRunner(Device& device, const StepProgram& program, const ProgramMemory& memory,
                const Bind& bind);

  // Runs the whole program once and returns when every lane is done.
  void run(Deadline deadline);
  // By OpId: seconds that each operation of the last run took, waiting for other ranks included.
  [[nodiscard]] const std::vector<double>& seconds() const { return seconds_; }
  // Those of a lane, summed.
  [[nodiscard]] double busy_seconds(Lane lane) const;

 private:
  const StepProgram& program_;
  std::vector<double> seconds_;                 // each written by its lane's thread
  std::vector<Work> works_;                     // by OpId
  std::vector<std::unique_ptr<Event>> events_;  // by OpId; only of operations that others wait for
  std::vector<std::unique_ptr<Stream>> streams_;  // by Lane, null where it has no operation;
                                                  // destroyed first, while the works still exist
};

}  // namespace gxp
