// The secret that each user has without asking for one: a file that gxp makes when it is first
// needed. Hosts that share the user's home share it, so ranks agree wherever a launcher puts them.
//
//   Where    $XDG_CONFIG_HOME/gxp/job.secret, else ~/.config/gxp/job.secret, where ~ is $HOME, else
//            what the user database says.
//   Made     whole or not at all, mode 600, and never over one that exists: of ranks that start at
//            once, on one host or several, one makes it and all read it.
#pragma once

#include <string>

#include "lib/base/environment.h"
#include "lib/net/socket/secret.h"

namespace gxp {

// Throws kConfig if this user has no home.
std::string user_secret_path(const Environment& environment);

// Reads the file; makes it first where there is none. Throws kIo if it can neither be read nor
// created, kConfig if there is no home directory, and as Secret::from_users_file().
Secret user_secret(const Environment& environment);

// The secret that the environment gives (find_secret()), else the user's.
Secret given_or_user_secret(const Environment& environment);

}  // namespace gxp
