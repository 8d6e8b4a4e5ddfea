// What an import gives: a run file, and a report.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/report/report.h"
#include "lib/tools/imports/import.h"

namespace gxp {

// The run file that gxp train takes: each setting with a comment that says where it comes from and
// what differs. `sets` ("optim.lr=1e-4") replace what the file says. A setting that only the data
// decides (steps of an epoch) gets a value that gxp train refuses, so that it is not forgotten.
// kConfig: a set is none, as load_config() says it.
std::string to_run_file(const ImportResult& result, std::span<const std::string> sets);

// What `gxp train` will still refuse of the run file, one line each: files that it must be given,
// rules that do not hold.
std::vector<std::string> remaining_problems(const std::string& run_file, const std::string& path);

// The command that starts the imported run: "gxp train run.toml --nproc 4".
std::string command_of(const ImportResult& result, const std::string& run_file);

// Tables of keys and settings, for text and CSV.
Report to_report(const ImportResult& result);

// One object: source, imports, errors, keys (key, value, verdict, resolved, gxp, note), settings,
// source_defaults, resolved_auto, batch, and if it imports run_file and what remains to be set.
std::string to_import_json(const ImportResult& result, const std::string& run_file,
                           const std::vector<std::string>& problems);

}  // namespace gxp
