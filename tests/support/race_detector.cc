#include "tests/support/race_detector.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gxp {
namespace {

uintptr_t address(const std::byte* data) { return reinterpret_cast<uintptr_t>(data); }

bool ordered(const Toucher& before, const Toucher& after, const VectorClock& clock) {
  return before.stream == after.stream || clock[before.stream] >= before.time;
}

// Keeps the last access of each stream.
void add_reader(std::vector<Toucher>& readers, const Toucher& reader) {
  for (Toucher& known : readers) {
    if (known.stream == reader.stream) {
      known = reader;
      return;
    }
  }
  readers.push_back(reader);
}

}  // namespace

uint64_t VectorClock::tick(size_t stream) {
  if (stream >= times_.size()) times_.resize(stream + 1);
  return ++times_[stream];
}

void VectorClock::join(const VectorClock& other) {
  if (other.times_.size() > times_.size()) times_.resize(other.times_.size());
  for (size_t i = 0; i < other.times_.size(); ++i) {
    times_[i] = std::max(times_[i], other.times_[i]);
  }
}

std::optional<std::string> RaceDetector::add(const Work& work, size_t stream,
                                             std::string_view stream_name,
                                             const VectorClock& clock) {
  const Toucher toucher{stream, clock[stream], *words_.emplace(work.name).first,
                        *words_.emplace(stream_name).first};
  std::optional<std::string> first;
  for (const Access& access : work.accesses) {
    std::optional<std::string> race = touch(access, toucher, clock);
    if (race && !first) first = std::move(race);
  }
  return first;
}

// Makes `at` a border between pieces; returns the first piece that starts there or later.
RaceDetector::Pieces::iterator RaceDetector::cut(uintptr_t at) {
  const auto next = pieces_.lower_bound(at);
  if (next == pieces_.begin()) return next;
  Piece& before = std::prev(next)->second;
  if (before.end <= at) return next;
  Piece tail = before;
  before.end = at;
  return pieces_.emplace_hint(next, at, std::move(tail));
}

std::optional<std::string> RaceDetector::touch(const Access& access, const Toucher& toucher,
                                               const VectorClock& clock) {
  std::optional<std::string> race;
  const uintptr_t end = address(access.data) + access.bytes;
  uintptr_t begin = address(access.data);
  cut(end);
  for (auto piece = cut(begin); begin < end; ++piece) {
    if (piece == pieces_.end() || piece->first > begin) {  // bytes that nobody touched so far
      const uintptr_t border = piece == pieces_.end() ? end : std::min(end, piece->first);
      piece = pieces_.emplace_hint(piece, begin, Piece{border, {}, {}});
    }
    const uintptr_t until = piece->second.end;
    Toucher& writer = piece->second.writer;
    std::vector<Toucher>& readers = piece->second.readers;
    const auto check = [&](const Toucher& other, std::string_view verb) {
      if (race || ordered(other, toucher, clock)) return;
      race = fmt::format(
          "race: '{}' on stream '{}' {} {}, which '{}' on stream '{}' {}, and no event orders "
          "them; record one on '{}' after '{}' and wait for it on '{}' before '{}'",
          toucher.work, toucher.stream_name, access.write ? "writes" : "reads",
          describe(begin, until), other.work, other.stream_name, verb, other.stream_name,
          other.work, toucher.stream_name, toucher.work);
    };
    if (writer.time > 0) check(writer, "writes");
    if (access.write) {
      for (const Toucher& reader : readers) check(reader, "reads");
      writer = toucher;
      readers.clear();
    } else {
      add_reader(readers, toucher);
    }
    begin = until;
  }
  return race;
}

void RaceDetector::name(ConstMemory memory, std::string text) {
  names_.push_back({address(memory.data), address(memory.data) + memory.bytes, std::move(text)});
}

void RaceDetector::forget(ConstMemory memory) {
  const uintptr_t begin = address(memory.data);
  const uintptr_t end = begin + memory.bytes;
  const auto last = cut(end);
  pieces_.erase(cut(begin), last);
  std::erase_if(names_, [&](const Name& name) { return name.begin >= begin && name.end <= end; });
}

std::string RaceDetector::describe(uintptr_t begin, uintptr_t end) const {
  const Name* nearest = nullptr;
  for (const Name& name : names_) {
    if (name.begin > begin || name.end < end) continue;
    if (nearest == nullptr || name.end - name.begin <= nearest->end - nearest->begin) {
      nearest = &name;
    }
  }
  if (nearest == nullptr) return fmt::format("{} bytes at {:#x}", end - begin, begin);
  return fmt::format("bytes [{}, {}) of {}", begin - nearest->begin, end - nearest->begin,
                     nearest->text);
}

}  // namespace gxp
