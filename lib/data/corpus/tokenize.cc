#include "lib/data/corpus/tokenize.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/thread.h"
#include "lib/data/documents/document_batch.h"
#include "lib/data/documents/validation_split.h"
#include "lib/data/files/source_file.h"

namespace gxp {
namespace {

constexpr size_t kBatchBytes = size_t{1} << 20;

int usable_cores() {
  cpu_set_t cpus;
  return ::sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? std::max(1, CPU_COUNT(&cpus)) : 1;
}

// One line on a terminal's stderr, written over at most five times a second.
class ProgressLine {
 public:
  explicit ProgressLine(const std::string& path)
      : path_(path), bytes_(SourceFile(path).bytes()), shows_(::isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (has_shown_) std::fputs("\r\033[K", stderr);
  }
  void show(uint64_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (!shows_ || now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    has_shown_ = true;
    fmt::print(stderr, "\r\033[Ktokenized {} of {} of {}", format_bytes(done), format_bytes(bytes_),
               path_);
  }

 private:
  std::string path_;
  uint64_t bytes_;
  bool shows_, has_shown_ = false;
  std::chrono::steady_clock::time_point last_;
};

class ParallelTokenizer {
 public:
  ParallelTokenizer(DocumentReader& reader, const TokenizeRequest& request,
                    TokenCacheWriter& writer)
      : reader_(reader), request_(request), writer_(writer), progress_(reader.path()) {}

  void run() {
    {
      std::vector<std::jthread> threads;
      for (int i = 1; i < usable_cores(); ++i)
        threads.push_back(start_thread("gxp-tokenizer", [this] { work(); }));
      work();
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work() {
    std::vector<EncodedDocument> encoded;
    for (;;) {
      std::unique_lock lock(mutex_);
      if (ends_) return;
      const uint64_t turn = next_turn_++;
      std::exception_ptr error;
      DocumentBatch batch;
      try {
        batch = DocumentBatch::read(reader_, kBatchBytes);
      } catch (...) {
        error = std::current_exception();
      }
      ends_ |= error || batch.empty();
      lock.unlock();
      if (!error) error = encode(batch, encoded);
      lock.lock();
      turns_.wait(lock, [&] { return turn == written_turns_; });  // ends: each turn is written
      if (!error && !error_) error = write(encoded);
      if (!error_) error_ = error;
      ends_ |= bool(error_);
      ++written_turns_;
      progress_.show(reader_.consumed());
      turns_.notify_all();
    }
  }

  // Whether the document is of the part that is asked for.
  [[nodiscard]] bool takes(uint64_t number) const {
    if (request_.part == DocumentPart::kAll) return true;
    return is_for_validation(number, request_.run.data.validation_split) ==
           (request_.part == DocumentPart::kValidation);
  }

  std::exception_ptr encode(const DocumentBatch& batch,
                            std::vector<EncodedDocument>& encoded) const {
    encoded.clear();
    try {
      for (size_t i = 0; i < batch.size(); ++i) {
        const DocumentView document = batch[i];
        if (!takes(document.number)) continue;
        encoded.push_back(
            request_.encoder.pack(reader_.form(), document, "read " + reader_.place_of(document)));
      }
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  std::exception_ptr write(const std::vector<EncodedDocument>& encoded) {
    try {
      for (const EncodedDocument& document : encoded) writer_.add(document.ids, document.trained);
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  DocumentReader& reader_;  // guarded by the mutex, but for what is constant
  const TokenizeRequest& request_;
  TokenCacheWriter& writer_;
  std::mutex mutex_;
  std::condition_variable turns_;
  uint64_t next_turn_ = 0;      // of the next batch
  uint64_t written_turns_ = 0;  // batches that have been written
  bool ends_ = false;           // no batch follows
  std::exception_ptr error_;    // of the first document that has one
  ProgressLine progress_;
};

}  // namespace

void tokenize(DocumentReader& reader, const TokenizeRequest& request, TokenCacheWriter& writer) {
  ParallelTokenizer(reader, request, writer).run();
}

}  // namespace gxp
