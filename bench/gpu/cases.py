"""Test cases of gxp_cuda_test, each in a process of its own: an error that ends the GPU's context costs that case alone."""
import concurrent.futures
import os
import re
import time

from gpu.programs import Failed, LeftOut

NO_GPU = 77  # gxp_cuda_test's exit code
AT_A_TIME = 8
CASE_S = 30
FAILURE = re.compile(r"^\S+:\d+: failed: .*")
# Long ones, whose kernels others check alone: they come last.
LAST = ("a model trains", "every strategy", "hybrid strategies", "training ", "what is made again", "processes measure")
SANITIZED = ("layernorm*", "rmsnorm*", "an embedding*", "*classifier*", "attention is right*", "bias_backward*", "a norm's backward*")


def list_cases(check):
    """Sets check.cases. Failed, with exit code NO_GPU, where no GPU can be used."""
    program = check.path("tests", "cuda", "gxp_cuda_test")
    # Catch2 2 has the first option, and the number of tests as its exit code; Catch2 3 has the others.
    for options in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):
        listed = check.start([program, *options], 60)
        if listed.code == NO_GPU:
            raise Failed(listed.said(1), NO_GPU)
        names = [line.strip() for line in listed.stdout.splitlines() if line.strip()]
        if names and "nrecogni" not in listed.stdout + listed.stderr:
            check.cases = sorted(names, key=lambda name: name.startswith(LAST))
            return {}
    raise Failed(f"gxp_cuda_test lists no tests, {listed.how()}: {listed.said(2)}")


def pattern_of(name):
    """Catch2 reads names as patterns."""
    return re.sub(r'([\\,\[\]"*])', r"\\\1", name)


def run_case(check, name, spare_s):
    if check.left_s() < spare_s + 1:
        return {"name": name, "status": "left out", "seconds": 0}
    outcome = check.start([check.path("tests", "cuda", "gxp_cuda_test"), "-r", "compact", pattern_of(name)], CASE_S)
    failures = [line[:600] for line in outcome.stdout.splitlines() if FAILURE.match(line)]
    case = {"name": name, "status": "passed", "seconds": round(outcome.seconds, 1)}
    if outcome.code != 0 or "assertion" not in outcome.stdout:  # "No test cases matched" ends well, too
        case["status"] = "failed" if failures and outcome.code and outcome.code > 0 else outcome.how()
        case["failures"] = failures[:20] or [outcome.said()]
    return case


def run_cases(check, spare_s=0):
    """As many as there is time for before `spare_s` of the part are left."""
    cases, begin = [], time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(min(AT_A_TIME, max(2, os.cpu_count() or 2))) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_case, check, name, spare_s) for name in check.cases]):
            cases.append(done.result())
            if time.monotonic() - begin > 2:
                check.note({"cases": cases})
                begin = time.monotonic()
    check.note({"cases": cases})
    failed = [case["name"] for case in cases if case["status"] not in ("passed", "left out")]
    if failed:
        raise Failed(f"{len(failed)} of {len(cases)} cases: {'; '.join(failed)}")
    if any(case["status"] == "left out" for case in cases):
        raise LeftOut(f"{sum(case['status'] == 'left out' for case in cases)} of {len(cases)} cases; the others passed")
