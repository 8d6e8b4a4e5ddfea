// The host that gxp runs on: its /proc and /sys (sysfs_host.h), with the facts of the GPUs' driver.
#pragma once

namespace gxp {

class HostTree;

// HostTree::absent says what the host lacks. kUnavailable: there is no /sys.
HostTree probe_host();

}  // namespace gxp
