#include "lib/train/replica/neighbour_copies.h"

#include <array>
#include <filesystem>

#include "lib/ckpt/native/step_directory.h"
#include "lib/transport/transport.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks.h"
#include "tests/temporary_directory.h"

namespace gxp {

TEST_CASE("what an earlier attempt has left of later replicas is removed", "[train]") {
  namespace fs = std::filesystem;
  const TemporaryDirectory directory;
  const std::string kept = partial_path(directory.path(), 5);
  const std::string left = partial_path(directory.path(), 6);
  for (const std::string& path : {kept, left}) fs::create_directory(path);
  run_ranks(1, [&](Communicator& communicator) {
    const NeighbourCopies copies(communicator, {.directory = directory.path()}, {false}, 5, 5);
    return 0;
  });
  CHECK(fs::exists(kept));
  CHECK_FALSE(fs::exists(left));
}

TEST_CASE("a neighbour that announces a replica's text of any size is named", "[train]") {
  const TemporaryDirectory directory;
  InprocWorld second(2);
  const auto said = run_ranks(2, [&](Communicator& communicator) -> std::string {
    const auto transport = second.make_transport(communicator.rank());
    if (communicator.rank() == 1) {
      (void)make_save_id(communicator);
      communicator.barrier();
      const std::array<uint64_t, 2> sizes = {uint64_t{1} << 62, 0};
      std::array<uint64_t, 2> theirs{};
      const Ticket leaves = transport->send(0, 0, memory_of(sizes));
      const Ticket arrives = transport->recv(0, 0, memory_of(theirs));
      for (const Ticket ticket : {leaves, arrives})
        transport->wait(ticket, Deadline::after(std::chrono::seconds(5)));
      communicator.barrier();
      return "";
    }
    NeighbourCopies copies(
        communicator, {.directory = directory.path(), .transport = transport.get()}, {false}, 5, 0);
    copies.start([](StagedState& staged) { staged.info.step = 7; });
    std::string error;
    try {
      copies.finish();
    } catch (const std::exception& failed) {
      error = failed.what();
    }
    communicator.barrier();
    return error;
  });
  CHECK(said[0] == "replicate step 7: rank 1 announces 4611686018427387904 B of text");
}

}  // namespace gxp
