"""The report of gpu_check.py as Markdown: each step's result, then a table of each kind of result."""

MFU = ("MFU: 6 FLOPs per multiplied parameter and token, causal half of attention, over the data sheet's bf16 rate without "
       "sparsity. The last columns divide gxp's tokens/s by PyTorch's.")


def collected(results, key):
    """What the steps found under `key`: lists joined, the rest listed."""
    found = []
    for step in results["steps"]:
        value = (step.get("data") or {}).get(key)
        if value is not None:
            found += value if isinstance(value, list) else [value]
    return found


def table(head, rows):
    """`rows` is made here: a result that is not as expected costs its table alone."""
    try:
        rows = list(rows)
    except (ArithmeticError, LookupError, TypeError, ValueError) as why:
        rows = [[f"FAILED: {type(why).__name__}: {why}", *[""] * (len(head) - 1)]]
    lines = ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(cell(text) for text in row) + " |" for row in rows] if rows else []


def cell(text):
    return str(text).replace("|", "/").replace("\n", " ")


def first_and_last(losses):
    return f"{losses[0]:.3f} -> {losses[-1]:.3f}" if losses else ""


def clocks(row):
    slowed = f", slowed by {' and '.join(row['slowed_by'])}" if row.get("slowed_by") else ""
    return f"{row['sm_mhz']:.0f} MHz, {row['watts']:.0f} W{slowed}" if "sm_mhz" in row else ""


def training_rows(results):
    torch = {(row["model"], row["how"]): row for row in collected(results, "torch")}
    for (model, how), row in list(torch.items()):
        if how == "compiled by blocks":
            torch.setdefault((model, "compiled"), row)
    for row in collected(results, "training"):
        model = row["model"].removesuffix(", fastest").removesuffix(" fp8")
        ratios = [f"{row['tokens_per_s'] / torch[model, how]['tokens_per_s']:.2f}" if (model, how) in torch else ""
                  for how in ("eager", "compiled")]
        yield [row["model"], f"{row['tokens_per_s']:.0f}", f"{100 * row['mfu']:.1f}%", f"{row['peak_bytes'] / 2**30:.1f}",
               first_and_last(row["losses"]), clocks(row), *ratios]
    for row in collected(results, "torch"):
        model, how = row["model"], row["how"]
        yield [f"{model}, PyTorch {how}", f"{row['tokens_per_s']:.0f}", "", f"{row['peak_bytes'] / 2**30:.1f}",
               first_and_last(row["losses"]), clocks(row), "", ""]


def kernel_rows(results):
    for k in collected(results, "kernels"):
        if "error" in k:
            yield [k["what"], f"FAILED: {k['error']}", "", "", ""]
        else:
            yield [k["what"], f"{1e6 * k['seconds']:.1f}", f"{k['flops_per_s'] / 1e12:.1f}", f"{k['bytes_per_s'] / 1e9:.0f}",
                   f"{100 * k['share_of_ceiling']:.0f}%"]


def step_kernel_rows(results, most=40):
    rows = collected(results, "step_kernels")
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        busy, idle = (sum(row[key] for row in own) for key in ("seconds", "idle_seconds"))
        for row in own[:most]:
            yield [model, f"{row['name'][:140]} {row['grid']}", f"{row['calls']:.1f}", f"{1e3 * row['seconds']:.3f}",
                   f"{100 * row['seconds'] / busy:.1f}%", f"{1e3 * row['idle_seconds']:.3f}"]
        yield [model, "all kernels", "", f"{1e3 * busy:.3f}", "100%", f"{1e3 * idle:.3f}"]


def class_rows(results):
    for row in collected(results, "by_class"):
        yield [row["model"], row["class"], f"{row['milliseconds']:.2f}", f"{100 * row['share']:.1f}%",
               *(f"{row[key]:.2f}" if row.get(key) is not None else "" for key in ("predicted_milliseconds", "ratio", "ideal_milliseconds"))]


def memory_rows(results):
    for row in collected(results, "memory"):
        planned, driver = row["planned_bytes"] / 2**20, row["driver_bytes"] / 2**20
        yield [row["settings"], f"{planned:.0f}", f"{driver:.0f}", f"{driver - planned:+.0f}"]


def collective_rows(results):
    """Of all-reduces; the share: what copies of all that they read and write would take, of their time."""
    for row in collected(results, "collectives"):
        out, within = row["out_of_place"], row["in_place"]
        yield [row["ranks"], f"{row['size'] / 2**20:.0f}", f"{out['time_us']:.0f}", f"{within['time_us']:.0f}", f"{out['busbw']:.1f}",
               f"{row['copy_gb_per_s']:.0f}", f"{100 * out['copy_share']:.0f}%", f"{100 * within['copy_share']:.0f}%"]


def case_rows(results):
    """What failed, with its first assertions; and the slowest."""
    cases = collected(results, "cases")
    for case in cases:
        if case["status"] not in ("passed", "left out"):
            yield [case["name"], case["status"], f"{case['seconds']:.1f}", " // ".join(case["failures"][:3])]
    for case in sorted((c for c in cases if c["status"] == "passed"), key=lambda c: -c["seconds"])[:5]:
        yield [case["name"], "passed", f"{case['seconds']:.1f}", "one of the slowest"]


def write_markdown(results, path):
    lines = [f"# GPU check, {results['date']}", "", f"{'; '.join(dict.fromkeys(collected(results, 'gpu')))}; `{results['command']}`"]
    for versions in collected(results, "versions")[:1]:
        lines += ["", ", ".join(f"{name} {value}" for name, value in versions.items())]
    lines += table(("part", "step", "result", "s"),
                   [[s["part"], s["name"], s["status"], f"{s.get('seconds', 0):.0f}"] for s in results["steps"]])
    training = table(("model", "tokens/s", "MFU", "peak GiB", "loss", "clock and power", "over PyTorch eager", "over torch.compile"),
                     training_rows(results))
    lines += (["", MFU] + training) if training else []
    lines += table(("test case", "result", "s", "failed assertions"), case_rows(results))
    lines += table(("memory of 124M", "planned MiB", "driver MiB", "more"), memory_rows(results))
    lines += table(("ranks of an all-reduce on one GPU", "MiB", "us", "us in place", "bus GB/s", "copy GB/s", "share", "share in place"),
                   collective_rows(results))
    for found in collected(results, "sanitizer") + collected(results, "ranks") + collected(results, "exact"):
        lines += ["", ", ".join(f"{name}: {value}" for name, value in found.items())]
    lines += table(("model", "class of kernels", "ms", "share", "predicted ms", "measured/predicted", "ideal ms"), class_rows(results))
    lines += table(("model", "kernel, by CUPTI", "calls a step", "ms a step", "share", "ms idle before"), step_kernel_rows(results))
    lines += table(("kernel", "us", "TFLOP/s", "GB/s", "of the ceiling"), kernel_rows(results))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
