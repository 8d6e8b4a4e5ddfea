// Reading of pasted matrices.
#include "lib/tools/topology/read/smi_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/tools/topology/read/smi_headings.h"
#include "lib/tools/topology/read/smi_words.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

using smi::cell_length;
using smi::Heading;
using smi::is_device;
using smi::is_numbered;
using smi::kPeerStates;
using smi::Word;
using smi::words_in_line;

constexpr size_t kMostNamedPairs = 4;  // of those that differ there and back

// One matrix: its row of columns and what follows, without labels. A row, of columns or of cells,
// may go on in the next lines.
class MatrixReader {
 public:
  MatrixReader(std::vector<std::string> lines, size_t first_line, const std::string& name)
      : lines_(std::move(lines)), first_line_(first_line), name_(name) {}

  PastedMatrix read() {
    const size_t rows = read_heading();
    for (size_t line = rows; line < lines_.size(); ++line) read_line(line);
    finish();
    return std::move(matrix_);
  }

 private:
  [[nodiscard]] size_t number_of(size_t line) const { return first_line_ + line + 1; }
  [[noreturn]] void fail_at(size_t line, int column, const std::string& why) const {
    fail(ErrorKind::kCorrupt, "read topology {}:{}:{}: {}", name_, number_of(line), column, why);
  }
  void note(size_t line, const std::string& what) {
    matrix_.notes.push_back(fmt::format("{}:{}: {}", name_, number_of(line), what));
  }

  [[nodiscard]] bool is_column(std::string_view word) const {
    return std::ranges::any_of(matrix_.devices,
                               [&](const auto& device) { return device.column == word; });
  }

  // Whether the line after an unfinished row of columns has the rest of it.
  [[nodiscard]] bool goes_on_heading(size_t line) const {
    if (line >= lines_.size()) return false;
    const std::vector<Word> words = words_in_line(lines_[line]);
    const bool is_whole = std::ranges::any_of(words, [](const Word& w) { return w.text == "CPU"; });
    for (const Word& word : words) {
      if (word.text == "CPU") return true;
      const bool is_numbered_device =
          is_numbered(word.text, "GPU") || is_numbered(word.text, "NIC");
      if (is_column(word.text) || !(is_whole ? is_device(word.text) : is_numbered_device))
        return false;
    }
    return !words.empty();
  }

  // The line behind it.
  size_t read_heading() {
    size_t line = 0;
    while (!add_columns(line) && goes_on_heading(line + 1)) ++line;
    const size_t count = matrix_.devices.size();
    if (count > kMaxMatrixDevices)
      fail_at(0, 1, fmt::format("{} columns; at most {} are read", count, kMaxMatrixDevices));
    matrix_.cells.assign(count, std::vector<std::string>(count));
    return line + 1;
  }

  // Whether the columns end in this line, with "CPU Affinity".
  bool add_columns(size_t line) {
    for (const Word& word : words_in_line(lines_[line])) {
      if (word.text == "CPU") return true;
      add_column(word, line);
    }
    return false;
  }

  void add_column(const Word& word, size_t line) {
    if (word.text.size() > 64) fail_at(line, word.column, "the name of a column is too long");
    if (is_column(word.text))
      fail_at(line, word.column, fmt::format("column {} occurs twice", word.text));
    matrix_.devices.push_back(
        {.column = std::string(word.text), .is_gpu = is_numbered(word.text, "GPU")});
    PastedMatrix::Device& device = matrix_.devices.back();
    if (!device.is_gpu && !is_numbered(word.text, "NIC")) device.name = word.text;
  }

  void read_line(size_t line) {
    const std::vector<Word> words = words_in_line(lines_[line], line);
    if (words.empty()) return;
    if (words.size() == 2 && words[0].text.ends_with(':')) return read_legend(words);
    const auto device = std::ranges::find_if(
        matrix_.devices, [&](const auto& known) { return known.column == words[0].text; });
    if (device != matrix_.devices.end())
      return read_row(line, size_t(device - matrix_.devices.begin()), words);
    const bool is_row = is_numbered(words[0].text, "GPU") || is_numbered(words[0].text, "NIC");
    if (is_row && words.size() > 1 && words[1].text != "=")
      fail_at(line, words[0].column, fmt::format("row {} has no column", words[0].text));
  }

  // Adds the next line to the row that ends with `words` if its first word is such a one.
  template <class IsMore>
  bool take_next_line(std::vector<Word>& words, const IsMore& is_more) {
    const size_t line = words.back().line + 1;
    if (line >= lines_.size()) return false;
    const std::vector<Word> next = words_in_line(lines_[line], line);
    if (next.empty() || is_column(next[0].text) || !is_more(next)) return false;
    words.insert(words.end(), next.begin(), next.end());
    return true;
  }

  bool take_more_cells(std::vector<Word>& words) {
    return take_next_line(words, [](const std::vector<Word>& next) {
      return cell_length(next[0].text) > 0 && (next.size() < 2 || next[1].text != "=");
    });
  }

  bool take_more_affinity(std::vector<Word>& words) {
    return take_next_line(words, [](const std::vector<Word>& next) {
      return std::ranges::all_of(next, [](const Word& word) {
        return word.text == "N/A" ||
               word.text.find_first_not_of("0123456789,-") == std::string_view::npos;
      });
    });
  }

  // "NIC0: mlx5_0".
  void read_legend(const std::vector<Word>& words) {
    const std::string_view column = words[0].text.substr(0, words[0].text.size() - 1);
    for (PastedMatrix::Device& device : matrix_.devices) {
      if (!device.is_gpu && device.column == column) device.name = words[1].text.substr(0, 64);
    }
  }

  // Takes the cell with which the word begins off its front: cells may have run together.
  std::string take_cell(Word& word, std::string_view row) {
    size_t length = cell_length(word.text);
    std::string cell(word.text.substr(0, length));
    if (length == 0 && word.text.starts_with("PH")) {  // "PH0-115", where paste has lost a letter
      length = 2;
      cell = "PHB";
      note(word.line, fmt::format("\"{}\" is taken as PHB", word.text.substr(0, 16)));
    }
    if (length == 0)
      fail_at(word.line, word.column,
              fmt::format("row {}: \"{}\" is not a path type", row, word.text.substr(0, 40)));
    word.text.remove_prefix(length);
    word.column += int(length);
    if (cell == "SOC") return "SYS";  // as drivers before 384 had it
    return cell == "PSB" ? "PIX" : cell;
  }

  // Takes as many cells as there are columns from the front of `words`; returns the index of the
  // first word that is left.
  size_t read_cells(size_t line, size_t row, std::vector<Word>& words) {
    const size_t count = matrix_.devices.size();
    size_t next = 1;
    for (size_t column = 0; column < count; ++column) {
      if (next == words.size() && !take_more_cells(words)) {
        fail_at(
            line, words[0].column,
            fmt::format("row {} has {} cells; there are {} columns", words[0].text, column, count));
      }
      std::string cell = take_cell(words[next], words[0].text);
      if (words[next].text.empty()) ++next;
      if (cell == "X" && column != row)
        fail_at(line, words[0].column,
                fmt::format("row {}: X is in the column of {}", words[0].text,
                            matrix_.devices[column].column));
      const bool is_peer = std::ranges::find(kPeerStates, cell) != kPeerStates.end();
      if (cell != "X") ++(is_peer ? peer_cells_ : place_cells_);
      matrix_.cells[row][column] = std::move(cell);
    }
    return next;
  }

  void read_row(size_t line, size_t row, const std::vector<Word>& all) {
    PastedMatrix::Device& device = matrix_.devices[row];
    if (device.has_row)
      fail_at(line, all[0].column, fmt::format("row {} occurs twice", all[0].text));
    device.has_row = true;
    device.place = {.line = int(number_of(line)), .column = all[0].column};
    std::vector<Word> words = all;
    const size_t next = read_cells(line, row, words);
    while (words.size() < next + 2 && take_more_affinity(words)) {
    }
    if (next < words.size() && cell_length(words[next].text) > 0 && words[next].text != "N/A") {
      fail_at(words[next].line, words[next].column,
              fmt::format("row {} has more cells than the {} columns", words[0].text,
                          matrix_.devices.size()));
    }
    read_affinity(device, words, next);
  }

  // "0-31,64-95  0  N/A".
  void read_affinity(PastedMatrix::Device& device, const std::vector<Word>& words, size_t first) {
    if (first < words.size()) device.cpu_affinity = words[first].text.substr(0, 4096);
    if (first + 1 < words.size()) device.numa_affinity = words[first + 1].text.substr(0, 64);
    if (first + 2 < words.size()) device.memory_node = words[first + 2].text.substr(0, 64);
  }

  // One side may say what the other leaves out.
  void finish_pair(size_t a, size_t b) {
    std::string& one = matrix_.cells[a][b];
    std::string& other = matrix_.cells[b][a];
    if (one.empty()) one = other;
    if (other.empty()) other = one;
    if (one == other) return;
    if (++one_sided_ <= kMostNamedPairs) {
      matrix_.notes.push_back(fmt::format("{}: {} to {} is {}, and back {}{}", name_,
                                          matrix_.devices[a].column, matrix_.devices[b].column, one,
                                          other, matrix_.is_p2p ? "" : "; the first is used"));
    }
    if (matrix_.is_p2p) return;  // peers may reach each other one way
    other = one;
  }

  void finish() {
    if (peer_cells_ > 0 && place_cells_ > 0)
      fail_at(0, 1, "cells of topo -m and of topo -p2p are mixed; read one of them");
    matrix_.is_p2p = peer_cells_ > 0;
    for (size_t a = 0; a < matrix_.devices.size(); ++a) {
      if (matrix_.devices[a].is_gpu && !matrix_.devices[a].has_row)
        matrix_.notes.push_back(
            fmt::format("{}: row {} is missing", name_, matrix_.devices[a].column));
      for (size_t b = 0; b < a; ++b) finish_pair(b, a);
    }
    if (one_sided_ > kMostNamedPairs)
      matrix_.notes.push_back(fmt::format("{}: {} more pairs differ there and back", name_,
                                          one_sided_ - kMostNamedPairs));
  }

  const std::vector<std::string> lines_;
  const size_t first_line_;  // index in the file
  const std::string& name_;
  PastedMatrix matrix_;
  size_t peer_cells_ = 0;
  size_t place_cells_ = 0;
  size_t one_sided_ = 0;  // pairs
};

bool has_rows(const PastedMatrix& matrix) {
  return std::ranges::any_of(matrix.devices, [](const auto& device) { return device.has_row; });
}

// NICs by the numbers of their columns; where these are names, counted.
void number_nics(PastedMatrix& matrix) {
  const auto is_nic = [](const auto& device) { return !device.is_gpu; };
  const bool are_numbered = std::ranges::all_of(matrix.devices, [](const auto& device) {
    return device.is_gpu || is_numbered(device.column, "NIC");
  });
  int count = 0;
  for (PastedMatrix::Device& device : matrix.devices) {
    if (is_nic(device))
      device.number =
          are_numbered ? whole_number<int>(device.column.substr(3)).value_or(count) : count;
    else
      device.number = whole_number<int>(device.column.substr(3)).value_or(0);
    count += is_nic(device) ? 1 : 0;
  }
}

// The peer states of `peers`, in the order of the devices of `matrix`.
std::vector<std::vector<std::string>> peer_states_of(const PastedMatrix& matrix,
                                                     const PastedMatrix& peers) {
  const size_t count = matrix.devices.size();
  std::vector<std::vector<std::string>> states(count, std::vector<std::string>(count));
  const auto index_in_peers = [&](size_t device) {
    const auto found = std::ranges::find(peers.devices, matrix.devices[device].column,
                                         &PastedMatrix::Device::column);
    return size_t(found - peers.devices.begin());
  };
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = 0; b < count; ++b) {
      const size_t from = index_in_peers(a), to = index_in_peers(b);
      if (a != b && from < peers.devices.size() && to < peers.devices.size())
        states[a][b] = peers.cells[from][to];
    }
  }
  return states;
}

// Whether a legend explains the cells for PCIe, but none for NVLinks: that of topo -mp.
bool hides_nvlinks(const std::vector<std::string>& lines, const PastedMatrix& matrix) {
  const auto explains = [&](std::string_view cell) {
    return std::ranges::any_of(lines, [&](const std::string& line) {
      const std::vector<Word> words = words_in_line(line);
      return words.size() > 2 && words[0].text == cell && words[1].text == "=";
    });
  };
  const auto has_nvlinks = [](const auto& row) {
    return std::ranges::any_of(row, [](const auto& cell) { return cell.starts_with("NV"); });
  };
  return explains("PIX") && std::ranges::none_of(matrix.cells, has_nvlinks) &&
         std::ranges::none_of(lines,
                              [](const auto& line) { return line.find("NV#") != line.npos; });
}

}  // namespace

bool looks_like_matrix(std::string_view text) {
  constexpr size_t kMaxLooked = 64u << 10;
  return !smi::headings_of(smi::plain_lines(text.substr(0, kMaxLooked))).empty();
}

PastedMatrix read_pasted_matrix(std::string_view text, const std::string& name) {
  const auto refuse = [&](const std::string& why) {
    fail(ErrorKind::kCorrupt, "read topology {}:1:1: {}", name, why);
  };
  if (text.size() > kMaxMatrixBytes)
    refuse(fmt::format("it has more than {}", format_bytes(kMaxMatrixBytes)));
  const std::vector<std::string> lines = smi::plain_lines(text);
  const std::vector<Heading> headings = smi::headings_of(lines);
  if (headings.empty()) refuse("the header row (GPU0 GPU1 ...) is missing");
  std::optional<PastedMatrix> places, peers;
  for (size_t i = 0; i < headings.size() && !(places && peers); ++i) {
    const size_t line = headings[i].line;
    PastedMatrix matrix;
    try {
      matrix = MatrixReader(smi::lines_of_matrix(lines, headings, i), line, name).read();
    } catch (const Error&) {
      if (!places) throw;  // what comes after the matrix that is read need not be one
      continue;
    }
    std::optional<PastedMatrix>& same_kind = matrix.is_p2p ? peers : places;
    if (!has_rows(matrix) || same_kind) continue;
    if (headings.size() > 1) {
      matrix.notes.push_back(
          fmt::format("{}:{}: this one of {} matrices is read", name, line + 1, headings.size()));
    }
    same_kind = std::move(matrix);
  }
  if (!places && !peers) refuse("there is a header row, but no others");
  PastedMatrix& found = places ? *places : *peers;
  if (peers) found.peer_states = peer_states_of(found, *peers);
  if (places && peers) found.notes.insert(found.notes.begin(), peers->notes.back());
  number_nics(found);
  if (hides_nvlinks(lines, found))
    found.notes.push_back(fmt::format(
        "{}: the legend has no NV#, as that of nvidia-smi topo -mp, which does not show "
        "NVLinks; use topo -m",
        name));
  return std::move(found);
}

}  // namespace gxp
