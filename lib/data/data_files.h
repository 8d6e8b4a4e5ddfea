// What the files of a run are, before any of them is tokenized: whether its rows hold documents,
// and which settings of [data] are about them.
#pragma once

#include "lib/config/run_config.h"

namespace gxp {

// Which files must be here. Of the others it may stay unknown what they are.
enum class FilesNeeded {
  kAll,
  kOfValidation,  // data.valid, or with data.validation_split data.train
  kNone,          // the run is planned, or its documents are shown
};

struct DataPurpose {
  FilesNeeded needed = FilesNeeded::kAll;
  bool writes_chats = false;  // also apart from the files: --chat
};

// The run with DataConfig::documents as the files have it that are read for this purpose (all of
// them without kOfValidation): kUnknown if one is not here and no other one tells where documents
// begin. Errors: those of open_documents() for files that must be here; kConfig: cuDNN is asked for
// documents that are kept apart, which it cannot do; or a setting of [data] that is about
// files of some kind is set, and no file of the run is of that kind.
// Cost: reads up to half a MiB of each file, and the first record of JSON.
RunConfig with_files(RunConfig run, const DataPurpose& purpose);

}  // namespace gxp
