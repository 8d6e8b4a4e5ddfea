// The signals that ask `train` to finish its step, save and end: SIGHUP, SIGINT, SIGTERM, SIGUSR1.
#pragma once

namespace gxp {

// From now on the first of these signals is kept. If `may_insist`, a second SIGINT or SIGTERM ends
// the process at once, unsaved, with the exit code of a rank that failed; but not the same signal
// within 1 s: a launcher passes on what a scheduler sends to all processes of the job. gxp's own
// launcher kills its ranks itself if someone insists. SIGHUP and SIGUSR1 may come any number
// of times, as a terminal that closes sends the former twice. SIGHUP stays ignored where it was
// (nohup). SIGPIPE is ignored: a reader that leaves costs no step. Call once.
void catch_stop_signals(bool may_insist);

// The signal that came first, or 0. Any thread.
int stop_signal();

}  // namespace gxp
