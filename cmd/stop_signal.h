// The signals that ask `train` to finish its step, save and end: SIGHUP, SIGINT, SIGTERM, SIGUSR1.
#pragma once

namespace gxp {

// From now on the first of these signals is kept. A second SIGINT or SIGTERM ends the process at
// once, unsaved, with the exit code of a rank that failed; SIGHUP and SIGUSR1 may come any number
// of times, as a terminal that closes sends the former twice. SIGHUP stays ignored where it was
// (nohup). SIGPIPE is ignored: a reader that leaves costs no step. Call once.
void catch_stop_signals();

// The signal that came first, or 0. Any thread.
int stop_signal();

}  // namespace gxp
