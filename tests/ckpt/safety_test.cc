// What a save and a conversion must not take away, whatever lies in their way.
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/ckpt/format.h"
#include "lib/ckpt/native/checkpoint.h"
#include "lib/ckpt/native/part_files.h"
#include "lib/ckpt/native/writer.h"
#include "tests/catch.h"
#include "tests/ckpt/small_checkpoints.h"
#include "tests/ckpt/system_faults.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using Names = std::vector<std::string>;
using Steps = std::vector<uint64_t>;

void check_refused(ErrorKind expected, const Names& words, const std::function<void()>& act) {
  const auto [kind, text] = error_of(act);
  CAPTURE(text);
  CHECK(kind == expected);
  for (const std::string& word : words) CHECK_THAT(text, Contains(word));
}

// The exit status of a child process that does it; 0 if `act` returns.
int status_of_child(const std::function<void()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      act();
      ::_exit(0);
    } catch (const Error& error) {
      ::_exit(exit_code(error.kind()));
    } catch (...) {
      ::_exit(70);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Does `act` as somebody to whom file modes apply.
int status_of_stranger(const std::function<void()>& act) {
  return status_of_child([&] {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(71);
    act();
  });
}

void let_everyone_in(const std::string& path) { fs::permissions(path, fs::perms::all); }

}  // namespace

TEST_CASE("the part of another save is not taken, and a missing one is told with its rank",
          "[ckpt]") {
  const TemporaryDirectory dir;
  const WriterRank mine{1, 0, 2}, other{1, 1, 2};
  const FilePart first = write_one_part(dir.path(), mine);
  const FilePart second = write_one_part(dir.path(), other);
  leave_part(dir.path(), mine, "new", first);
  leave_part(dir.path(), other, "old", second);
  const auto await = [&](const std::stop_token& stop) {
    return await_parts(dir.path(), mine, "new", stop, Deadline::after(std::chrono::seconds(0)));
  };
  check_refused(ErrorKind::kIo, {"part-00001-of-00002.json", "rank 1", "share"},
                [&] { await({}); });
  std::stop_source stopped;
  stopped.request_stop();
  CHECK(await(stopped.get_token()).empty());
  leave_part(dir.path(), other, "new", second);
  const auto parts = await({});
  REQUIRE(parts.size() == 2);
  CHECK(to_json(parts[1]) == to_json(second));
  publish_checkpoint(dir.path(), parts, step_info(1, 2), {1});
  CHECK(list(dir / "step-00000001").size() == 3);  // the parts have gone
}

TEST_CASE("a rank whose directory goes away under it leaves the cause to the rank that failed",
          "[ckpt]") {
  const TemporaryDirectory dir;
  lose_directory_at_unlink();
  check_refused(ErrorKind::kPeer, {"shard-00001-of-00002.bin", "a rank that failed"}, [&] {
    CheckpointWriter(dir.path(), {1, 1, 2});
  });
  CHECK(list(dir.path()).empty());
}

TEST_CASE("a rank whose part goes away under it leaves the cause to the rank that failed",
          "[ckpt]") {
  const TemporaryDirectory dir;
  const WriterRank mine{1, 1, 2};
  const FilePart part = write_one_part(dir.path(), mine);
  lose_file_at_rename();
  check_refused(ErrorKind::kPeer, {"part-00001-of-00002.json", "a rank that failed"},
                [&] { leave_part(dir.path(), mine, "id", part); });
}

TEST_CASE("a directory that cannot be listed is no directory without checkpoints", "[ckpt]") {
  const TemporaryDirectory dir;
  write_bytes(dir / "file", "");
  fs::create_symlink("loop", dir / "loop");
  check_refused(ErrorKind::kIo, {"look for checkpoints in " + dir / "file", "Not a directory"},
                [&] { complete_steps(dir / "file"); });
  check_refused(ErrorKind::kIo, {dir / "loop", "symbolic links"},
                [&] { complete_steps(dir / "loop"); });
  CHECK(complete_steps(dir / "absent").empty());
  CHECK(complete_steps(dir.path()).empty());
}

TEST_CASE("a newest step that cannot be looked into is not passed over", "[ckpt]") {
  const TemporaryDirectory dir;
  save_step(dir.path(), 1);
  const std::string newest = dir / "step-00000002";
  const std::string kind = GENERATE("file", "dangling link", "manifest in a loop", "manifest gone");
  CAPTURE(kind);
  if (kind == "file") write_bytes(newest, "");
  if (kind == "dangling link") fs::create_symlink("elsewhere", newest);
  if (kind.starts_with("manifest")) fs::create_directory(newest);
  if (kind == "manifest in a loop") fs::create_symlink("manifest.json", newest + "/manifest.json");
  if (kind == "manifest gone") {
    CHECK(complete_steps(dir.path()) == Steps{1});
    return;
  }
  check_refused(ErrorKind::kIo, {newest, "newest"}, [&] { complete_steps(dir.path()); });
  check_refused(ErrorKind::kIo, {newest}, [&] { Checkpoint::open(dir.path()); });
}

TEST_CASE("a newest step of mode 700 of another user is not passed over", "[ckpt]") {
  const TemporaryDirectory dir;
  let_everyone_in(dir.path());
  save_step(dir.path(), 1);
  fs::permissions(save_step(dir.path(), 2),
                  ::geteuid() == 0 ? fs::perms::owner_all : fs::perms::none);
  CHECK(status_of_stranger([&] { complete_steps(dir.path()); }) == 4);
  fs::permissions(dir / "step-00000002", fs::perms::all);
  CHECK(status_of_stranger([&] { complete_steps(dir.path()); }) == 0);
}

TEST_CASE("older checkpoints that cannot be looked at stay when a new one is saved", "[ckpt]") {
  const TemporaryDirectory dir;
  save_step(dir.path(), 1);
  write_bytes(dir / "step-00000002", "");
  save_step(dir.path(), 3, 1, {1});
  CHECK(list(dir.path()) == Names{"step-00000001", "step-00000002", "step-00000003"});
}

TEST_CASE("a checkpoint is not published without each rank's file in its size", "[ckpt]") {
  const TemporaryDirectory dir;
  const TemporaryDirectory other_host;
  save_step(dir.path(), 1, 2);
  std::vector<FilePart> parts = {write_one_part(dir.path(), {2, 0, 2})};
  const bool shared = GENERATE(false, true);
  parts.push_back(write_one_part(shared ? dir.path() : other_host.path(), {2, 1, 2}));
  const std::string file = dir / ".step-00000002.partial/shard-00001-of-00002.bin";
  if (shared) fs::resize_file(file, 23);
  check_refused(ErrorKind::kIo,
                {file, shared ? "24 bytes written, 23 found" : "No such file",
                 "one directory that all hosts share"},
                [&] { publish_checkpoint(dir.path(), parts, step_info(2, 2), {1}); });
  CHECK(list(dir.path()) == Names{"step-00000001"});
}

TEST_CASE("a link in place of a partial directory leads nobody anywhere", "[ckpt]") {
  const TemporaryDirectory dir;
  const TemporaryDirectory victim;
  for (const char* name : {"letter", "manifest.json", "shard-00000-of-00001.bin"})
    write_bytes(victim / name, "dear");
  const Names before = list(victim.path());
  fs::create_symlink(victim.path(), dir / ".step-00000002.partial");
  check_refused(ErrorKind::kIo, {dir / ".step-00000002.partial", "a link", "move it away"},
                [&] { save_step(dir.path(), 2); });
  save_step(dir.path(), 3, 1, {1});  // clears what killed runs have left
  CHECK(list(victim.path()) == before);
  CHECK(list(dir.path()) == Names{".step-00000002.partial", "step-00000003"});
}

TEST_CASE("a partial directory of another user is not written into", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string partial = dir / ".step-00000002.partial";
  fs::create_directory(partial);
  if (::chown(partial.c_str(), 65534, 65534) != 0) {
    WARN("skipped: no right to give a directory away");
    return;
  }
  check_refused(ErrorKind::kIo, {partial, "belongs to user 65534"},
                [&] { save_step(dir.path(), 2); });
}

TEST_CASE("a file is gxp's only by the whole of its name", "[ckpt]") {
  for (const char* name : {"manifest.json", "shard-00001-of-00012.bin", "frozen-1-of-2.bin",
                           "frozen-part-1-of-2.json", "shard-1-of-2.bin.same", "huggingface/",
                           "huggingface/config.json", ".partial-huggingface/.finished",
                           ".partial-huggingface/model-00001-of-00002.safetensors"}) {
    CAPTURE(name);
    CHECK(is_checkpoint_file(name));
  }
  for (const char* name :
       {"", "manifest.json~", "shard-.bin", "shard-of-.bin", "shard--of-.bin", "shard-1-of-.bin",
        "shard-x-of-2.bin", "shard-1-of-2.bin.bak", "my-shard-1-of-2.bin", "shard-1-of-2-of-3.bin",
        "shard-1-of-2.same", "huggingface", "huggingface/notes.txt", "huggingface/deep/"}) {
    CAPTURE(name);
    CHECK_FALSE(is_checkpoint_file(name));
  }
  for (const CheckpointFormat& format : kFormats) CHECK_FALSE(format.owns("model-a-of-b.bin"));
}

TEST_CASE("a save removes what gxp wrote and leaves what else lies there", "[ckpt]") {
  const TemporaryDirectory dir;
  write_bytes(save_step(dir.path(), 1) + "/notes.txt", "mine");
  fs::create_directories(dir / ".step-00000009.partial/deep");
  write_bytes(dir / ".step-00000009.partial/shard-00000-of-00001.bin", "half");
  const TemporaryDirectory elsewhere;
  fs::create_symlink(save_step(elsewhere.path(), 2), dir / "step-00000002");
  save_step(dir.path(), 3, 1, {1});
  CHECK(read_bytes(dir / ".step-00000001.partial/notes.txt") == "mine");
  CHECK(list(dir / ".step-00000001.partial") == Names{"notes.txt"});
  CHECK(list(dir / ".step-00000009.partial") == Names{"deep"});
  CHECK(complete_steps(elsewhere.path()) == Steps{2});
  CHECK(complete_steps(dir.path()) == Steps{2, 3});
}

TEST_CASE("without an exchange of names there is a complete checkpoint at every moment", "[ckpt]") {
  const NoExchange here;
  const TemporaryDirectory dir;
  save_step(dir.path(), 5, 3);
  const int renames = GENERATE(0, 1, 2);
  const int status = status_of_child([&] {
    die_at_rename(renames);
    save_step(dir.path(), 5, 1);
  });
  CHECK(status == (renames < 2 ? kDiedAtRename : 0));
  CHECK(complete_steps(dir.path()) == Steps{5});
  const auto found = Checkpoint::open(dir.path());
  found.verify();
  CHECK(found.manifest().info.world_size == (renames < 2 ? 3 : 1));
  CHECK(is_gxp_checkpoint(dir.path()));
  const uint64_t next = GENERATE(5, 6);
  save_step(dir.path(), next, 2, {1});  // also of what was left
  CHECK(list(dir.path()) == Names{step_name(next)});
  CHECK(Checkpoint::open(dir.path()).manifest().info.world_size == 2);
}

TEST_CASE("a conversion killed without an exchange of names is taken back", "[ckpt]") {
  const NoExchange here;
  const TemporaryDirectory dir;
  write_small("gxp", dir / "out", false);
  const int status = status_of_child([&] {
    die_at_rename(2);  // the first publishes the step in OUT
    write_small("gxp", dir / "out", true);
  });
  CHECK(status == kDiedAtRename);
  CHECK(list(dir.path()) == Names{".partial-out", ".replaced-out"});
  check_refused(ErrorKind::kIo, {dir / "out", "interrupted conversion", ".replaced-out"},
                [&] { read_checkpoint(dir / "out"); });
  check_refused(ErrorKind::kUsage, {"it exists; --force"},
                [&] { write_small("gxp", dir / "out", false); });
  CHECK(read_checkpoint(dir / "out").tensors.size() == 1);
  write_small("safetensors", dir / "out", true);
  CHECK(list(dir.path()) == Names{"out"});
  CHECK(list(dir / "out") == Names{"model.safetensors"});
}

TEST_CASE("--force replaces nothing that gxp does not write", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string format = GENERATE(from_range(format_names()));
  const std::string place =
      GENERATE("notes.txt", "step-00000001/notes.txt", "step-00000001/deep/n");
  write_small(format == "gxp" ? "gxp" : "safetensors", dir / "out", false);
  if (format == "huggingface") write_bytes(dir / "out/config.json", "{}");
  if (format == "gxp") save_step(dir / "out", 1);
  fs::create_directories(fs::path(dir / "out/" + place).parent_path());
  write_bytes(dir / "out/" + place, "mine");
  const std::string entry = place.substr(0, place.find("/n"));
  check_refused(ErrorKind::kUsage, {"write " + dir / "out", entry, "no conversion writes"},
                [&] { write_small("gxp", dir / "out", true); });
  CHECK(read_bytes(dir / "out/" + place) == "mine");
  fs::remove_all(dir / "out/step-00000001");
  fs::remove(dir / "out/notes.txt");
  write_small("gxp", dir / "out", true);
  CHECK(list(dir.path()) == Names{"out"});
}

TEST_CASE("--force replaces no link and no file without a checkpoint", "[ckpt]") {
  const TemporaryDirectory dir;
  write_small("gxp", dir / "real", false);
  fs::create_directory_symlink("real", dir / "link");
  write_bytes(dir / "letter", "dear");
  write_bytes(dir / "letter.json", "{}");
  for (const char* name : {"link", "letter", "letter.json"}) {
    CAPTURE(name);
    check_refused(ErrorKind::kUsage, {dir / name, "not replaced"},
                  [&] { write_small("gxp", dir / name, true); });
  }
  write_small("safetensors", dir / "w.safetensors", false);
  write_small("safetensors", dir / "w.safetensors", true);
  CHECK(list(dir.path()) == Names{"letter", "letter.json", "link", "real", "w.safetensors"});
}

TEST_CASE("what lies where a conversion writes first is removed only if it is gxp's", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string partial = dir / ".partial-out";
  fs::create_directory(partial);
  write_bytes(partial + "/model.safetensors", "half");
  write_small("safetensors", dir / "out", false);
  CHECK(list(dir.path()) == Names{"out"});
  const bool link = GENERATE(false, true);
  fs::create_directory(link ? dir / "mine" : partial);
  if (link) fs::create_directory_symlink("mine", partial);
  write_bytes(partial + "/notes.txt", "mine");
  check_refused(ErrorKind::kUsage, {partial, "in the way", link ? "neither" : "notes.txt"},
                [&] { write_small("safetensors", dir / "out", true); });
  CHECK(read_bytes(partial + "/notes.txt") == "mine");
}

TEST_CASE("new parent directories and a conversion's directory are made durable", "[ckpt]") {
  const TemporaryDirectory dir;
  take_synced();
  save_step(dir / "run/a/ckpt", 1);
  Names synced = take_synced();
  for (const std::string& path : {dir.path(), dir / "run", dir / "run/a", dir / "run/a/ckpt"}) {
    CAPTURE(path);
    CHECK(std::ranges::count(synced, path) > 0);
  }
  write_small("safetensors", dir / "deep/out", false);
  synced = take_synced();
  CHECK(std::ranges::count(synced, dir / "deep/.partial-out") == 1);
  CHECK(std::ranges::count(synced, dir / "deep") == 1);
}

TEST_CASE("a path that the system refuses is an error of the system, not a bug", "[ckpt]") {
  const TemporaryDirectory dir;
  fs::create_symlink("loop", dir / "loop");
  fs::create_symlink("loop.safetensors", dir / "loop.safetensors");
  const std::string endless = dir / std::string(300, 'x');
  for (const std::string& path :
       {dir / "loop", dir / "loop.safetensors", dir / "loop/a", endless}) {
    CAPTURE(path);
    check_refused(ErrorKind::kIo, {path}, [&] { read_checkpoint(path); });
  }
  for (const std::string& path : {dir / "loop/a", endless})
    CHECK(error_of([&] { write_small("gxp", path, true); }).kind == ErrorKind::kIo);
  fs::create_directory(dir / "closed");
  fs::permissions(dir / "closed", fs::perms::none);
  let_everyone_in(dir.path());
  CHECK(status_of_stranger([&] { read_checkpoint(dir / "closed/a"); }) == 4);
  CHECK(status_of_stranger([&] { write_small("gxp", dir / "closed/a", true); }) == 4);
  fs::permissions(dir / "closed", fs::perms::owner_all);  // without it, only root can remove it
}

}  // namespace gxp
