// Reads the settings of a run from everywhere they can come from, and checks them.
//
//   Precedence  command line (--set) > environment (GXP_<SECTION>_<KEY>) > file > config.json that
//               model.config or model.init names, for [model] > default. What one of the first
//               three says of [model] must agree with config.json.
//   Values      as in TOML; in --set and in the environment strings need no quotes, and a list may
//               be written a,b,c. A variable that is set but empty counts as not set.
//   Errors      kIo, kCorrupt: as read_text_file(), for up to 1 MiB; of a config.json, 16 MiB. kConfig: all other problems at
//               once in one message, each line "run.toml:12: optim.lr: must be positive, is -1".
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/environment.h"
#include "lib/config/run_config.h"

namespace gxp {

// The source of a value.
struct Origin {
  enum class Kind { kDefault, kModel, kFile, kEnvironment, kCommandLine };  // from weak to strong
  Kind kind = Kind::kDefault;
  std::string source;  // the file's path, the variable's name; "" for the other two
  int line = 0;        // kFile only
};

// "default", "from DIR/config.json", "run.toml:12", "GXP_OPTIM_LR", "--set".
std::string to_string(const Origin& origin);

struct LoadedConfig {
  RunConfig run;
  std::map<std::string, Origin> origins;  // by "section.key"; every setting has one
};

// `path` "": no file. `sets`: "optim.lr=1e-4" and the like; a later one wins. Without `trains`,
// data.train may be empty.
LoadedConfig load_config(const std::string& path, std::span<const std::string> sets = {},
                         const Environment& environment = {}, bool trains = true);

// The section [comm] alone, for a command that trains nothing: from `sets` and the environment; no
// rule over several settings is judged. kConfig, too: a set of another section.
CommConfig load_comm_config(std::span<const std::string> sets, const Environment& environment);

// The same as load_config() over the text of a file; `path` is used in messages and origins only.
LoadedConfig parse_config(std::string_view text, const std::string& path,
                          std::span<const std::string> sets = {},
                          const Environment& environment = {});

}  // namespace gxp
