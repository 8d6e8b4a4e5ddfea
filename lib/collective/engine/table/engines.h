// The engines that a user can choose, and the choice.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/collective/engine/engine.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/collective/tune/profile.h"
#include "lib/collective/tune/selection.h"
#include "lib/config/run_config.h"
#include "lib/device/device.h"
#include "lib/transport/context.h"

namespace gxp {

// Everything referred to outlives the engine.
struct EngineContext {
  const TransportContext& ranks;  // no store and no secret where the engine needs none
  const CommConfig& comm;
  Device& device;  // gives scratch and communicator memory
  SelectionSettings selection{};
  Profile profile = builtin_profile();
  int local_rank = 0;
  FlightRecorder* recorder = nullptr;  // which the native engine writes
};

struct EngineRow {
  std::string_view name;
  std::string_view summary;
  // Whether its own launcher starts the ranks and its library brings them together: then they need
  // neither gxp's store nor its secret.
  bool joins_ranks;
  // Whether it runs gxp's algorithms over gxp's transports, to which the settings of [comm] apply.
  bool is_own;
  // Whether this build includes it and this machine supports it.
  Support (*probe)();
  std::unique_ptr<Engine> (*make)(const EngineContext& context);
};

// In order of preference.
std::span<const EngineRow> engine_rows();

// As choose_engine(), for the ranks of a job, which all call it: where comm.engine and all settings
// of the native engine are auto, and ranks compute on GPUs, the one that gpu_choice.h predicts to
// be faster; rank 0 logs which and why.
const EngineRow& choose_engine_of_job(const EngineContext& context);

// The one that comm.engine names; auto: the first that can serve. kUnavailable: it cannot serve
// here, with the reason. kConfig: there is no such engine, or a setting of [comm] is for another
// one.
const EngineRow& choose_engine(const CommConfig& comm);

}  // namespace gxp
