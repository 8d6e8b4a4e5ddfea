// The three descriptors that every program takes to be open.
#pragma once

namespace gxp {

// Opens /dev/null on those of 0, 1 and 2 that are closed ("2>&-"), so that no file or socket gets
// their numbers, and with it the log or the results. To be called first in main(). What is then
// read is empty and what is logged is lost; to write results to a closed stdout stays an error.
void open_standard_streams();

}  // namespace gxp
