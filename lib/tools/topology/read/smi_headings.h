// The positions of `nvidia-smi topo` matrices in pasted text, and their lines without prefixes of
// other programs: "0: " of srun -l, "[1,0]<stdout>:" of mpirun, "[pod/a/b] " of kubectl. Only the
// readers of smi_matrix.h include it.
#pragma once

#include <string>
#include <vector>

namespace gxp::smi {

// A line of columns, "GPU0 GPU1 ... CPU Affinity ...", which no row of cells is.
struct Heading {
  size_t line = 0;
  size_t last_line = 0;   // of the line on which it continues
  size_t begin = 0;       // of the first column in the line
  std::string label{};    // the label in front of it, without blanks and times
  bool is_whole = false;  // it ends with "CPU Affinity"
};

// Of plain_lines(); at most 64. A heading after an incomplete label counts only if a row follows.
std::vector<Heading> headings_of(const std::vector<std::string>& lines);

// The lines of headings[index], from its own up to the next one that has its label; blanks in the
// place of labels. Lines with another label are empty: they come from other ranks.
std::vector<std::string> lines_of_matrix(const std::vector<std::string>& lines,
                                         const std::vector<Heading>& headings, size_t index);

}  // namespace gxp::smi
