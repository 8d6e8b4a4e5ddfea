// The signals that ask `train` to finish its step, save and end: SIGINT, SIGTERM, SIGUSR1.
#pragma once

namespace gxp {

// From now on the first of these signals is kept; after it they have their default effect again, so
// that a second one ends the process at once. Call once.
void catch_stop_signals();

// The signal that came, or 0. Any thread.
int stop_signal();

}  // namespace gxp
