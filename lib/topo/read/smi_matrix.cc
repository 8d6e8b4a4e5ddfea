// Reading of pasted matrices.
#include "lib/topo/read/smi_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

constexpr std::array<std::string_view, 8> kNearness = {"PIX", "PXB", "PHB", "NODE",
                                                       "SYS", "SOC", "PSB", "X"};
constexpr std::array<std::string_view, 6> kPeerStates = {"OK", "CNS", "GNS", "TNS", "NS", "U"};

constexpr size_t kMostNamedPairs = 4;  // of those that differ there and back

bool is_digit(char c) { return c >= '0' && c <= '9'; }
// '>' begins the lines of a quoted message, '#' those of a comment; '|' parts a table's cells.
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '>' || c == '#' || c == '|';
}

struct Word {
  std::string_view text;
  int column = 0;  // from 1
};

std::vector<Word> words_in_line(std::string_view line) {
  std::vector<Word> words;
  for (size_t at = 0; at < line.size();) {
    size_t end = at;
    while (end < line.size() && !is_blank(line[end])) ++end;
    if (end > at) words.push_back({line.substr(at, end - at), int(at) + 1});
    at = std::max(end, at + 1);
  }
  return words;
}

// Colours: ESC [ ... letter.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\x1b') {
      plain += text[at];
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == '[') ++at;
    while (at + 1 < text.size() && (is_digit(text[at + 1]) || text[at + 1] == ';')) ++at;
    if (at + 1 < text.size()) ++at;
  }
  return plain;
}

bool is_numbered(std::string_view word, std::string_view stem) {
  return word.size() > stem.size() && word.size() < stem.size() + 6 && word.starts_with(stem) &&
         std::all_of(word.begin() + ptrdiff_t(stem.size()), word.end(), is_digit);
}

// The length of the cell that `text` begins with; 0: none.
size_t cell_length(std::string_view text) {
  if (text.starts_with("NV")) {
    size_t end = 2;
    while (end < text.size() && is_digit(text[end])) ++end;
    return end > 2 && end < 6 ? end : 0;
  }
  size_t longest = 0;
  const auto try_words = [&](const auto& words) {
    for (const std::string_view word : words) {
      if (text.starts_with(word)) longest = std::max(longest, word.size());
    }
  };
  try_words(kNearness);
  try_words(kPeerStates);
  return longest;
}

bool is_device(std::string_view word) {
  if (is_numbered(word, "GPU") || is_numbered(word, "NIC")) return true;
  return cell_length(word) < word.size() && is_digit(word.back()) && !is_digit(word.front()) &&
         word.find_first_of(":.,=") == std::string_view::npos;
}

// "GPU0 GPU1 ... CPU Affinity ...": a line of columns, which no row of cells is.
bool is_heading(const std::vector<Word>& words) {
  if (words.empty() || !is_numbered(words[0].text, "GPU")) return false;
  for (const Word& word : words) {
    if (word.text == "CPU") return true;
    if (!is_device(word.text)) return false;
  }
  return true;
}

// One matrix: its row of columns and what follows, up to the next such row.
class MatrixReader {
 public:
  MatrixReader(const std::vector<std::string>& lines, const std::string& name)
      : lines_(lines), name_(name) {}

  PastedMatrix read(size_t heading, size_t end) {
    read_heading(heading);
    for (size_t line = heading + 1; line < end; ++line) read_line(line);
    finish();
    return std::move(matrix_);
  }

 private:
  [[noreturn]] void fail_at(size_t line, int column, const std::string& why) const {
    fail(ErrorKind::kCorrupt, "read topology {}:{}:{}: {}", name_, line, column, why);
  }
  void note(size_t line, const std::string& what) {
    matrix_.notes.push_back(fmt::format("{}:{}: {}", name_, line + 1, what));
  }

  void read_heading(size_t line) {
    for (const Word& word : words_in_line(lines_[line])) {
      if (word.text == "CPU") break;  // "CPU Affinity"
      if (word.text.size() > 64) fail_at(line + 1, word.column, "the name of a column is too long");
      const bool is_known = std::ranges::any_of(
          matrix_.devices, [&](const auto& device) { return device.column == word.text; });
      if (is_known)
        fail_at(line + 1, word.column, fmt::format("column {} occurs twice", word.text));
      matrix_.devices.push_back(
          {.column = std::string(word.text), .is_gpu = is_numbered(word.text, "GPU")});
      PastedMatrix::Device& device = matrix_.devices.back();
      if (!device.is_gpu && !is_numbered(word.text, "NIC")) device.name = word.text;
    }
    const size_t count = matrix_.devices.size();
    if (count > kMaxMatrixDevices)
      fail_at(line + 1, 1,
              fmt::format("{} columns; at most {} are read", count, kMaxMatrixDevices));
    matrix_.cells.assign(count, std::vector<std::string>(count));
  }

  void read_line(size_t line) {
    const std::vector<Word> words = words_in_line(lines_[line]);
    if (words.empty()) return;
    if (words.size() == 2 && words[0].text.ends_with(':')) return read_legend(words);
    const auto device = std::ranges::find_if(
        matrix_.devices, [&](const auto& known) { return known.column == words[0].text; });
    if (device != matrix_.devices.end())
      return read_row(line, size_t(device - matrix_.devices.begin()), words);
    const bool is_row = is_numbered(words[0].text, "GPU") || is_numbered(words[0].text, "NIC");
    if (is_row && words.size() > 1 && words[1].text != "=")
      fail_at(line + 1, words[0].column, fmt::format("row {} has no column", words[0].text));
  }

  // "NIC0: mlx5_0".
  void read_legend(const std::vector<Word>& words) {
    const std::string_view column = words[0].text.substr(0, words[0].text.size() - 1);
    for (PastedMatrix::Device& device : matrix_.devices) {
      if (!device.is_gpu && device.column == column) device.name = words[1].text.substr(0, 64);
    }
  }

  // Takes as many cells as there are columns from the front of `words`; the index of the first word
  // that is left. What has grown together is cut.
  size_t read_cells(size_t line, size_t row, std::vector<Word>& words) {
    const size_t count = matrix_.devices.size();
    size_t next = 1;
    for (size_t column = 0; column < count; ++column) {
      if (next == words.size()) {
        fail_at(
            line + 1, words[0].column,
            fmt::format("row {} has {} cells; there are {} columns", words[0].text, column, count));
      }
      Word& word = words[next];
      size_t length = cell_length(word.text);
      std::string cell(word.text.substr(0, length));
      if (length == 0 && word.text.starts_with("PH")) {  // "PH0-115", where paste has lost a letter
        length = 2;
        cell = "PHB";
        note(line, fmt::format("\"{}\" is taken as PHB", word.text.substr(0, 16)));
      }
      if (length == 0) {
        fail_at(line + 1, word.column,
                fmt::format("row {}: \"{}\" is no cell", words[0].text, word.text.substr(0, 40)));
      }
      if (cell == "SOC") cell = "SYS";  // as drivers before 384 had it
      if (cell == "PSB") cell = "PIX";
      const bool is_peer = std::ranges::find(kPeerStates, cell) != kPeerStates.end();
      if (cell != "X") ++(is_peer ? peer_cells_ : place_cells_);
      matrix_.cells[row][column] = std::move(cell);
      word.text.remove_prefix(length);
      word.column += int(length);
      if (word.text.empty()) ++next;
    }
    return next;
  }

  void read_row(size_t line, size_t row, const std::vector<Word>& all) {
    PastedMatrix::Device& device = matrix_.devices[row];
    if (device.has_row)
      fail_at(line + 1, all[0].column, fmt::format("row {} occurs twice", all[0].text));
    device.has_row = true;
    device.place = {.line = int(line) + 1, .column = all[0].column};
    std::vector<Word> words = all;
    const size_t next = read_cells(line, row, words);
    if (next < words.size() && cell_length(words[next].text) > 0 && words[next].text != "N/A") {
      fail_at(line + 1, words[next].column,
              fmt::format("row {} has more cells than the {} columns", words[0].text,
                          matrix_.devices.size()));
    }
    read_affinity(device, words, next);
  }

  // "0-31,64-95  0  N/A".
  void read_affinity(PastedMatrix::Device& device, const std::vector<Word>& words, size_t first) {
    if (first < words.size()) device.cpu_affinity = words[first].text.substr(0, 4096);
    if (first + 1 < words.size()) device.numa_affinity = words[first + 1].text.substr(0, 64);
  }

  // One side may say what the other leaves out.
  void finish_pair(size_t a, size_t b) {
    std::string& one = matrix_.cells[a][b];
    std::string& other = matrix_.cells[b][a];
    if (one.empty()) one = other;
    if (other.empty()) other = one;
    if (one == other) return;
    if (++one_sided_ <= kMostNamedPairs) {
      matrix_.notes.push_back(fmt::format("{}: {} to {} is {}, and back {}; the first is taken",
                                          name_, matrix_.devices[a].column,
                                          matrix_.devices[b].column, one, other));
    }
    other = one;
  }

  void finish() {
    if (peer_cells_ > 0 && place_cells_ > 0)
      fail_at(1, 1, "cells of topo -m and of topo -p2p are mixed; read one of them");
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

  const std::vector<std::string>& lines_;
  const std::string& name_;
  PastedMatrix matrix_;
  size_t peer_cells_ = 0;
  size_t place_cells_ = 0;
  size_t one_sided_ = 0;  // pairs
};

std::vector<std::string> plain_lines(std::string_view text) {
  const std::string plain = without_escapes(text);
  std::vector<std::string> lines;
  for (const std::string_view line : split(plain, '\n')) lines.emplace_back(line);
  return lines;
}

std::vector<size_t> headings_of(const std::vector<std::string>& lines) {
  std::vector<size_t> headings;
  for (size_t line = 0; line < lines.size(); ++line) {
    if (is_heading(words_in_line(lines[line]))) headings.push_back(line);
  }
  return headings;
}

bool has_rows(const PastedMatrix& matrix) {
  return std::ranges::any_of(matrix.devices, [](const auto& device) { return device.has_row; });
}

}  // namespace

bool looks_like_matrix(std::string_view text) {
  constexpr size_t kMaxLooked = 64u << 10;
  return !headings_of(plain_lines(text.substr(0, kMaxLooked))).empty();
}

PastedMatrix read_pasted_matrix(std::string_view text, const std::string& name) {
  const auto refuse = [&](const std::string& why) {
    fail(ErrorKind::kCorrupt, "read topology {}:1:1: {}", name, why);
  };
  if (text.size() > kMaxMatrixBytes)
    refuse(fmt::format("it has more than {}", format_bytes(kMaxMatrixBytes)));
  const std::vector<std::string> lines = plain_lines(text);
  const std::vector<size_t> headings = headings_of(lines);
  if (headings.empty()) refuse("there is no row of columns, GPU0 GPU1 ...");
  std::optional<PastedMatrix> found;
  for (size_t i = 0; i < headings.size() && (!found || found->is_p2p); ++i) {
    const size_t end = i + 1 < headings.size() ? headings[i + 1] : lines.size();
    PastedMatrix matrix = MatrixReader(lines, name).read(headings[i], end);
    if (!has_rows(matrix) || (found && matrix.is_p2p)) continue;
    if (headings.size() > 1) {
      matrix.notes.push_back(fmt::format("{}:{}: of {} matrices this one is read", name,
                                         headings[i] + 1, headings.size()));
    }
    found = std::move(matrix);
  }
  if (!found) refuse("there are columns, but no rows");
  return std::move(*found);
}

}  // namespace gxp
