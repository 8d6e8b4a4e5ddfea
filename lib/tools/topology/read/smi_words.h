// The words in the output of `nvidia-smi topo`: cells, names of columns, and what other programs put
// around them. Only the readers of smi_matrix.h include it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace gxp::smi {

// Of topo -m, also as drivers before 384 wrote them, without NV#; and of topo -p2p.
inline constexpr std::array<std::string_view, 8> kNearness = {"PIX", "PXB", "PHB", "NODE",
                                                              "SYS", "SOC", "PSB", "X"};
inline constexpr std::array<std::string_view, 7> kPeerStates = {"OK", "CNS", "GNS", "TNS",
                                                                "NS", "DR",  "U"};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
// '>' begins the lines of a quoted message, '#' those of a comment; '|' parts a table's cells.
constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '>' || c == '#' || c == '|';
}

struct Word {
  std::string_view text;
  int column = 0;   // counted from 1
  size_t line = 0;  // index
};
std::vector<Word> words_in_line(std::string_view line, size_t number = 0);

// "GPU7" of the stem "GPU".
bool is_numbered(std::string_view word, std::string_view stem);
// The length of the cell that `text` begins with; 0: none.
size_t cell_length(std::string_view text);
// Whether a column may have that name: "GPU0", "NIC11", "mlx5_0".
bool is_device(std::string_view word);

// The lines without what is no text of nvidia-smi's: colours, other blanks than spaces, times.
// Characters keep their columns but for these.
std::vector<std::string> plain_lines(std::string_view text);

}  // namespace gxp::smi
