"""The report of gpu_check.py as Markdown: what failed first, then a table of each kind of result."""

MFU = ("MFU: 6 FLOPs per multiplied parameter and token, causal half of attention, over the data sheet's bf16 rate without "
       "sparsity.")


def collected(results, key):
    """What the steps found under `key`: lists joined, the rest listed."""
    found = []
    for step in results["steps"]:
        value = (step.get("data") or {}).get(key)
        if value is not None:
            found += value if isinstance(value, list) else [value]
    return found


def table(head, rows):
    lines = ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] if rows else []


def training_rows(results):
    torch = {}
    for found in collected(results, "torch"):
        torch.update(found)
    for row in collected(results, "training"):
        ratios = [f"{row['tokens_per_s'] / torch[kind]:.2f}" if kind in torch and row["model"] == "124M" else ""
                  for kind in ("eager", "compiled")]
        yield [row["model"], f"{row['tokens_per_s']:.0f}", f"{100 * row['mfu']:.1f}%", f"{row['peak_bytes'] / 2**30:.1f}", *ratios]


def kernel_rows(results):
    for k in collected(results, "kernels"):
        yield [k["what"], f"{1e6 * k['seconds']:.1f}", f"{k['flops_per_s'] / 1e12:.1f}", f"{k['bytes_per_s'] / 1e9:.0f}",
               f"{100 * k['share_of_ceiling']:.0f}%"]


def memory_rows(results):
    for row in collected(results, "memory"):
        planned, driver = row["planned_bytes"] / 2**20, row["driver_bytes"] / 2**20
        yield [row["settings"], f"{planned:.0f}", f"{driver:.0f}", f"{driver - planned:+.0f}"]


def collective_rows(results):
    """Of all-reduces; the share: what copies of all that they read and write would take, of their time."""
    for row in collected(results, "collectives"):
        out, within = row["out_of_place"], row["in_place"]
        yield [str(row["ranks"]), f"{row['size'] / 2**20:.0f}", f"{out['time_us']:.0f}", f"{within['time_us']:.0f}", f"{out['busbw']:.1f}",
               f"{row['copy_gb_per_s']:.0f}", f"{100 * out['copy_share']:.0f}%", f"{100 * within['copy_share']:.0f}%"]


def test_rows(results):
    for row in collected(results, "tests"):
        yield [str(row["shard"] + 1), row["said"], "; ".join(f"{seconds:.1f} s {name}" for seconds, name in row["slowest"])]


def write_markdown(results, path):
    lines = [f"# GPU check, {results['date']}", "", f"{'; '.join(collected(results, 'gpu'))}; `{results['command']}`"]
    for versions in collected(results, "versions"):
        lines += ["", ", ".join(f"{name} {value}" for name, value in versions.items())]
    lines += table(("part", "step", "result", "s"),
                   [[s["part"], s["name"], s["status"].replace("|", "/"), f"{s['seconds']:.0f}"] for s in results["steps"]])
    training = table(("model", "tokens/s", "MFU", "peak GiB", "over PyTorch eager", "over torch.compile"),
                     list(training_rows(results)))
    lines += (["", MFU] + training) if training else []
    lines += table(("memory of 124M", "planned MiB", "driver MiB", "more"), list(memory_rows(results)))
    lines += table(("ranks of an all-reduce on one GPU", "MiB", "us", "us in place", "bus GB/s", "copy GB/s", "share", "share in place"),
                   list(collective_rows(results)))
    lines += table(("tests", "result", "slowest"), list(test_rows(results)))
    for found in collected(results, "sanitizer") + collected(results, "ranks") + collected(results, "exact"):
        lines += ["", ", ".join(f"{name}: {value}" for name, value in found.items())]
    lines += table(("kernel", "us", "TFLOP/s", "GB/s", "of the ceiling"), list(kernel_rows(results)))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
