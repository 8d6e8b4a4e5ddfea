#include "lib/tools/topology/read/smi_headings.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "lib/tools/topology/read/smi_words.h"

namespace gxp::smi {
namespace {

constexpr size_t kMostMatrices = 64;  // of a file; the rest is not looked at
constexpr size_t kMostLinesToRow = 64;

// Where "GPU3" begins that ends the word, perhaps behind a label: "[1,0]<stdout>:GPU3".
std::optional<size_t> gpu_at_end(std::string_view word) {
  constexpr std::string_view kEndsLabel = ":])}$%,;";
  const size_t at = word.rfind("GPU");
  if (at == std::string_view::npos || !is_numbered(word.substr(at), "GPU")) return std::nullopt;
  if (at > 0 && kEndsLabel.find(word[at - 1]) == std::string_view::npos) return std::nullopt;
  return at;
}

std::string without_blanks(std::string_view text) {
  std::string rest(text);
  std::erase_if(rest, is_blank);
  return rest;
}

std::optional<Heading> find_heading(std::string_view line, size_t number) {
  const std::vector<Word> words = words_in_line(line);
  const auto first = std::ranges::find_if(
      words, [](const Word& word) { return gpu_at_end(word.text).has_value(); });
  if (first == words.end()) return std::nullopt;
  Heading heading{.line = number,
                  .last_line = number,
                  .begin = size_t(first->column) - 1 + *gpu_at_end(first->text)};
  const auto end = std::ranges::find(first, words.end(), "CPU", &Word::text);
  heading.is_whole = end != words.end();
  const bool is_certain =
      heading.is_whole && end + 1 != words.end() && (end + 1)->text == "Affinity";
  const auto is_column = [&](const Word& word) {
    const bool is_name = cell_length(word.text) < word.text.size() &&
                         word.text.find_first_of(":.,=") == std::string_view::npos;
    return is_device(word.text) || (is_certain && is_name);
  };
  if (!std::all_of(first + 1, end, is_column)) return std::nullopt;
  heading.label = without_blanks(line.substr(0, heading.begin));
  return heading;
}

// How a matrix's lines begin: with its heading's label, with that label but other numbers (of
// lines), or with nothing, where a prompt is in front of the heading alone.
enum class Labelling { kSame, kNone, kNumbers };

// Where the line goes on behind the label; nothing: it begins otherwise.
std::optional<size_t> behind_label(std::string_view line, std::string_view label,
                                   Labelling labelling) {
  if (labelling == Labelling::kNone) return 0;
  size_t at = 0;
  for (size_t i = 0; i < label.size(); ++i) {
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size()) return std::nullopt;
    if (labelling == Labelling::kNumbers && is_digit(label[i]) && is_digit(line[at])) {
      while (i + 1 < label.size() && is_digit(label[i + 1])) ++i;
      while (at < line.size() && is_digit(line[at])) ++at;
    } else if (line[at++] != label[i]) {
      return std::nullopt;
    }
  }
  return at;
}

std::string body_of(const std::string& line, size_t begin) {
  return std::string(begin, ' ') + line.substr(begin);
}

// Whether one of the next lines is the row of the heading's first column.
bool has_row_of(const std::vector<std::string>& lines, const Heading& heading,
                Labelling labelling) {
  const std::string_view columns = std::string_view(lines[heading.line]).substr(heading.begin);
  const std::string_view first = words_in_line(columns)[0].text;
  const size_t end = std::min(lines.size(), heading.line + 1 + kMostLinesToRow);
  for (size_t line = heading.line + 1; line < end; ++line) {
    const auto begin = behind_label(lines[line], heading.label, labelling);
    if (!begin) continue;
    const std::vector<Word> words = words_in_line(std::string_view(lines[line]).substr(*begin));
    if (words.size() > 1 && words[0].text == first && cell_length(words[1].text) > 0) return true;
  }
  return false;
}

std::optional<Labelling> labelling_of(const std::vector<std::string>& lines,
                                      const Heading& heading) {
  if (heading.label.empty()) return Labelling::kNone;
  for (const auto labelling : {Labelling::kSame, Labelling::kNone, Labelling::kNumbers}) {
    if (has_row_of(lines, heading, labelling)) return labelling;
  }
  return std::nullopt;
}

// The next part of a row of columns that did not fit a line: it names others.
bool goes_on(const std::vector<std::string>& lines, const Heading& heading, const Heading& before) {
  if (before.is_whole || before.last_line + 1 != heading.line || before.label != heading.label)
    return false;
  for (size_t line = before.line; line < heading.line; ++line) {
    const std::vector<Word> columns = words_in_line(lines[line]);
    for (const Word& word :
         words_in_line(std::string_view(lines[heading.line]).substr(heading.begin))) {
      if (std::ranges::find(columns, word.text, &Word::text) != columns.end()) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<Heading> headings_of(const std::vector<std::string>& lines) {
  std::vector<Heading> headings;
  for (size_t line = 0; line < lines.size() && headings.size() < kMostMatrices; ++line) {
    const auto heading = find_heading(lines[line], line);
    if (!heading || !(heading->label.empty() || heading->is_whole || labelling_of(lines, *heading)))
      continue;
    if (headings.empty() || !goes_on(lines, *heading, headings.back())) {
      headings.push_back(*heading);
    } else {
      headings.back().last_line = line;
      headings.back().is_whole = heading->is_whole;
    }
  }
  return headings;
}

std::vector<std::string> lines_of_matrix(const std::vector<std::string>& lines,
                                         const std::vector<Heading>& headings, size_t index) {
  const Heading& heading = headings[index];
  const Labelling labelling = labelling_of(lines, heading).value_or(Labelling::kNone);
  const auto ends = [&](const Heading& next) {
    return next.line > heading.line &&
           (labelling != Labelling::kSame || next.label == heading.label);
  };
  const auto next = std::ranges::find_if(headings, ends);
  const size_t end = next == headings.end() ? lines.size() : next->line;
  std::vector<std::string> of_matrix = {body_of(lines[heading.line], heading.begin)};
  for (size_t line = heading.line + 1; line < end; ++line) {
    const auto begin = behind_label(lines[line], heading.label, labelling);
    of_matrix.push_back(begin ? body_of(lines[line], *begin) : "");
  }
  return of_matrix;
}

}  // namespace gxp::smi
