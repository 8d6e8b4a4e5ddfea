#include "cmd/launch/launch_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/net/identity/identity.h"
#include "lib/net/socket/socket.h"

namespace gxp {
namespace {

// One word of a shell.
std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

// The command as gxp's launcher runs it on each host. `knows_hosts`: something else there tells it how
// many there are.
std::vector<std::string> host_command(const LaunchedCommand& command, bool knows_hosts) {
  std::vector<std::string> argv = command.argv;
  argv.insert(argv.end(), {"--nproc", std::to_string(command.nproc)});
  const std::string nnodes = std::to_string(command.nnodes - command.spares);
  if (command.min_nnodes > 0)
    argv.insert(argv.end(), {"--nnodes", fmt::format("{}:{}", command.min_nnodes, nnodes)});
  else if (!knows_hosts || command.spares > 0)
    argv.insert(argv.end(), {"--nnodes", nnodes});
  if (command.spares > 0) argv.insert(argv.end(), {"--spares", std::to_string(command.spares)});
  return argv;
}

std::string heading(const LaunchedCommand& command, std::string_view how) {
  return fmt::format("{} host{} with {} rank{} each. {}", command.nnodes,
                     command.nnodes == 1 ? "" : "s", command.nproc, command.nproc == 1 ? "" : "s",
                     how);
}

int port_of(const LaunchedCommand& command) {
  return command.master.empty() ? kDefaultMasterPort : parse_endpoint(command.master).port;
}

// With --no-kill, Slurm leaves the job without a script if the host is lost that runs it.
constexpr const char* kOnSlurmHost =
    "# The first host runs this script. When it is lost, the others put the job back into the "
    "queue.\n"
    "host='trap : USR1 TERM INT; \"$@\"; code=$?\n"
    "if ((code == 5 && SLURM_PROCID > 0 && ${SLURM_RESTART_COUNT:-0} < restarts)); then\n"
    "  scontrol requeue \"$SLURM_JOB_ID\"\nfi\nexit $code'\n";

// gxp's launcher on each host starts its ranks, again if one dies. A host that dies, unless fewer
// will do, and the time limit are for Slurm: it starts the job again, and the run goes on from its
// newest checkpoint.
std::string slurm_script(const LaunchedCommand& command) {
  std::string text = "#!/bin/bash\n# " + heading(command, "Submit it: sbatch FILE\n");
  text += fmt::format(
      "#SBATCH --job-name=gxp\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node=1\n"
      "#SBATCH --exclusive\n",
      command.nnodes);
  if (command.uses_gpus) text += fmt::format("#SBATCH --gpus-per-node={}\n", command.nproc);
  const bool restarts = command.max_restarts > 0;
  const bool shrinks = command.min_nnodes > 0 || command.spares > 0;
  if (shrinks)
    text +=
        "# The job goes on without a host that is lost. When it is there again, scontrol requeue "
        "JOB\n"
        "# takes it in: the ranks finish their step and save before.\n#SBATCH --no-kill\n";
  if (restarts)
    text +=
        "# A lost host that is needed puts the job back into the queue. So does SIGUSR1, two\n"
        "# minutes before the time limit: the ranks finish their step, save, and end with 138.\n"
        "#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --signal=USR1@120\n";
  // Since Slurm 20.11 a task gets no more CPUs than it asks for.
  text += restarts ? fmt::format("\nexport restarts={}\n", command.max_restarts) : "\n";
  text += fmt::format("{}srun {}--cpus-per-task=\"$SLURM_CPUS_ON_NODE\" {}{}\n",
                      shrinks ? kOnSlurmHost : "", shrinks ? "--no-kill " : "",
                      shrinks ? "bash -c \"$host\" gxp " : "",
                      shell_words(host_command(command, true)));
  if (restarts)
    text +=
        "code=$?\n"
        "# 5: a host did not come back in time; 137: srun has lost one, and has killed the "
        "others.\n"
        "if ((code == 5 || code == 137 || code == 138)) && "
        "((${SLURM_RESTART_COUNT:-0} < restarts)); then\n  scontrol requeue \"$SLURM_JOB_ID\"\nfi\n"
        "exit $code\n";
  return text;
}

std::string mpi_script(const LaunchedCommand& command) {
  if (command.max_restarts > 0)
    fail(ErrorKind::kUsage,
         "--print-launch mpi: mpirun starts no ranks again; leave --max-restarts out, or choose "
         "slurm, k8s or ssh");
  const std::string words = shell_words(command.argv);
  const int ranks = command.nproc * command.nnodes;
  return "#!/bin/bash\n# " + heading(command, "Start it: bash FILE HOSTS\n") +
         fmt::format(
             "# HOSTS names a host in each line: \"name slots={0}\" for Open MPI, \"name:{0}\" for "
             "MPICH.\nset -u\n"
             "if mpirun --version | grep -q 'Open MPI'; then\n"
             "  exec mpirun --hostfile \"$1\" -n {1} --map-by ppr:{0}:node --bind-to none {2}\n"
             "else\n  exec mpirun -f \"$1\" -n {1} -ppn {0} {2}\nfi\n",
             command.nproc, ranks, words);
}

std::string ssh_script(const LaunchedCommand& command) {
  const std::vector<std::string> argv = host_command(command, false);
  const std::string again =
      command.max_restarts == 0
          ? "host() { start \"$@\"; }\n"
          : fmt::format(
                "# 255: the connection is lost. The first host is waited for; the others may come "
                "back while it works.\n"
                "host() {{\n  local try code=0\n  for ((try = 0; $1 > 0 || try <= {}; ++try)); do\n"
                "    start \"$@\"; code=$?\n    ((code == 255)) || break\n    sleep 5\n"
                "    (($1 == 0)) || kill -0 \"${{pids[0]}}\" 2>/dev/null || break\n  done\n"
                "  return $code\n}}\n",
                command.max_restarts);
  // Without a host that was lost, the first one tells how the job has ended.
  const std::string_view code_of_job =
      command.min_nnodes > 0 || command.spares > 0
          ? "  [[ $pid != \"${pids[0]}\" ]] || worst=$code  # the others may be lost\n"
          : "  ((code <= worst)) || worst=$code\n";
  return "#!/bin/bash\n# " + heading(command, "Start it: bash FILE HOST...\n") +
         fmt::format(
             R"(# The first host has rank 0. All have this directory, and the same ~/.config/gxp/job.secret.
# When this script is interrupted, all ranks finish their step, save and end.
set -um
if (($# != {0})); then echo "give {0} hosts, not $#" >&2; exit 2; fi
master=${{1#*@}}:{1}  # without the user
directory=$(printf %q "$PWD")
command={2}
# With a terminal, the ranks get SIGHUP when the connection ends. A host that is silent for 15 s is lost.
alive=(-o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3)
start() {{
  ssh -tt -o BatchMode=yes "${{alive[@]}}" "$2" "cd $directory && exec $command --node-rank $1 --master $master" </dev/null
}}
)",
             command.nnodes, port_of(command), shell_word(shell_words(argv))) +
         again +
         R"(pids=()
trap 'kill -- "${pids[@]/#/-}" 2>/dev/null' INT TERM HUP
for name in "$@"; do
  host ${#pids[@]} "$name" &
  pids+=($!)
done
worst=0
for pid in "${pids[@]}"; do
  until wait "$pid"; code=$?; ! kill -0 "$pid" 2>/dev/null; do :; done  # a signal ends wait
)" + std::string(code_of_job) +
         R"(done
exit $worst
)";
}

// YAML's list of JSON's strings. Kubernetes replaces "$(NAME)", and takes "$$" for "$".
std::string command_list(std::vector<std::string> words) {
  for (std::string& word : words)
    for (size_t at = 0; (at = word.find('$', at)) != std::string::npos; at += 2)
      word.insert(at, "$");
  return nlohmann::json(words).dump();
}

// Pods of an Indexed Job have the names JOB-INDEX, which a headless service resolves.
std::string kubernetes_manifest(const LaunchedCommand& command) {
  std::vector<std::string> argv = host_command(command, false);
  argv[0] = "gxp";  // the image's
  argv.insert(argv.end(), {"--master", fmt::format("gxp-0.gxp:{}", port_of(command))});
  const bool restarts = command.max_restarts > 0;
  const std::string gpus =
      command.uses_gpus
          ? fmt::format("          resources: {{limits: {{nvidia.com/gpu: {}}}}}\n", command.nproc)
          : "";
  return "# " + heading(command, "Start it: kubectl apply -f FILE\n") +
         fmt::format(
             R"(# To be set: the image, which holds gxp, and the claim, whose volume holds the run file, the data and
# checkpoint.dir below /work. Once, before: kubectl create secret generic gxp --from-literal=secret=$(openssl rand -hex 32)
apiVersion: v1
kind: Service
metadata: {{name: gxp}}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {{job-name: gxp}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: gxp}}
spec:
  completionMode: Indexed
  completions: {0}
  parallelism: {0}
  backoffLimit: {1}
  template:
    spec:
      subdomain: gxp
      restartPolicy: {2}
      terminationGracePeriodSeconds: 120  # for the ranks to finish their step and save
      containers:
        - name: gxp
          image: IMAGE
          workingDir: /work
          command: {3}
          env:
            - {{name: GXP_JOB_SECRET, valueFrom: {{secretKeyRef: {{name: gxp, key: secret}}}}}}
{4}          volumeMounts:
            - {{name: work, mountPath: /work}}
            - {{name: memory, mountPath: /dev/shm}}
      volumes:
        - {{name: work, persistentVolumeClaim: {{claimName: CLAIM}}}}
        - {{name: memory, emptyDir: {{medium: Memory}}}}
)",
             command.nnodes, restarts ? command.max_restarts * command.nnodes : 0,
             restarts ? "OnFailure" : "Never", command_list(argv), gpus);
}

}  // namespace

std::string launch_script(ScriptKind kind, const LaunchedCommand& command) {
  // In the order of the enumerators.
  constexpr std::array kScripts = {slurm_script, kubernetes_manifest, ssh_script, mpi_script};
  return kScripts.at(size_t(kind))(command);
}

std::vector<std::string> without_options(const std::vector<std::string>& argv,
                                         const std::vector<std::string_view>& names) {
  std::vector<std::string> rest;
  for (size_t i = 0; i < argv.size(); ++i) {
    const std::string_view name = std::string_view(argv[i]).substr(0, argv[i].find('='));
    const bool is_left_out = std::ranges::find(names, name) != names.end();
    if (!is_left_out)
      rest.push_back(argv[i]);
    else if (name == argv[i])
      ++i;  // its value
  }
  return rest;
}

}  // namespace gxp
