#include "lib/collective/engine/mpi/mpi_job.h"

#include <array>
#include <cstdlib>

#include "lib/base/error.h"

namespace gxp {
namespace {

std::string text_of(int result) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  return {text.data(), size_t(length)};
}

// For several requests MPI says only that one has failed.
int first_error(int result, std::span<const MPI_Status> statuses) {
  if (result != MPI_ERR_IN_STATUS) return result;
  for (const MPI_Status& status : statuses) {
    if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING)
      return status.MPI_ERROR;
  }
  return result;
}

// After main(), so that what failed has been printed.
void abort_unfinished_job(int exit_status, void* /*unused*/) {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) MPI_Abort(MPI_COMM_WORLD, exit_status == 0 ? EXIT_FAILURE : exit_status);
}

}  // namespace

void check_mpi(int result, std::string_view act) {
  if (result != MPI_SUCCESS) fail(ErrorKind::kPeer, "{}: {}", act, text_of(result));
}

MpiJob::MpiJob() {
  int initialized = 0;
  int threads = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0)
    fail(ErrorKind::kUnavailable, "start MPI: this process has already started it");
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads), "start MPI");
  ::on_exit(abort_unfinished_job, nullptr);
  if (threads < MPI_THREAD_SERIALIZED)
    fail(ErrorKind::kUnavailable,
         "start MPI: it does not support MPI_THREAD_SERIALIZED; use an MPI that was built with "
         "threads");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "set up MPI");
}

MpiJob::~MpiJob() {
  if (!failed_ && !aborted_.is_set()) MPI_Finalize();
}

template <class Test>
void MpiJob::wait_until(const Test& test, Deadline deadline) {
  failed_ = true;
  wait_for_ranks("MPI", aborted_, test, deadline);
  failed_ = false;
}

void MpiJob::wait(MPI_Request& request, Deadline deadline) {
  wait_until(
      [&] {
        int done = 0;
        check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "wait for the other ranks in MPI");
        return done != 0;
      },
      deadline);
}

void MpiJob::wait(std::span<MPI_Request> requests, std::span<MPI_Status> statuses,
                  Deadline deadline) {
  wait_until(
      [&] {
        int done = 0;
        const int result =
            MPI_Testall(int(requests.size()), requests.data(), &done, statuses.data());
        check_mpi(first_error(result, statuses), "exchange messages by MPI");
        return done != 0;
      },
      deadline);
}

}  // namespace gxp
