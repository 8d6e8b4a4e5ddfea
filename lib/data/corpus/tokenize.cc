#include "lib/data/corpus/tokenize.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/thread.h"
#include "lib/data/documents/document_batch.h"
#include "lib/data/documents/validation_split.h"
#include "lib/data/files/source_file.h"
#include "lib/device/thread_pool.h"
#include "lib/report/terminal_line.h"

namespace gxp {
namespace {

constexpr size_t kBatchBytes = size_t{1} << 20;

class ParallelTokenizer {
 public:
  ParallelTokenizer(DocumentReader& reader, const TokenizeRequest& request,
                    TokenCacheWriter& writer)
      : reader_(reader),
        request_(request),
        writer_(writer),
        bytes_(SourceFile(reader.path()).bytes()) {}

  void run() {
    {
      std::vector<std::jthread> threads;
      for (int i = 1; i < default_thread_count(1); ++i)
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
      show_progress();
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

  void show_progress() {
    if (progress_.is_due())
      progress_.show(fmt::format("tokenized {} of {} of {}", format_bytes(reader_.consumed()),
                                 format_bytes(bytes_), reader_.path()));
  }

  DocumentReader& reader_;  // guarded by the mutex, but for what is constant
  const TokenizeRequest& request_;
  TokenCacheWriter& writer_;
  const uint64_t bytes_;  // of the file
  std::mutex mutex_;
  std::condition_variable turns_;
  uint64_t next_turn_ = 0;      // of the next batch
  uint64_t written_turns_ = 0;  // batches that have been written
  bool ends_ = false;           // no batch follows
  std::exception_ptr error_;    // of the first document that has one
  TerminalLine progress_;
};

}  // namespace

void tokenize(DocumentReader& reader, const TokenizeRequest& request, TokenCacheWriter& writer) {
  ParallelTokenizer(reader, request, writer).run();
}

}  // namespace gxp
