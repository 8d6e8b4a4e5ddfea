#!/usr/bin/env python3
"""tokenizer_peers.py GXP_TOKENIZE DATA: ids of random texts by gxp and by the libraries themselves.

The tokenizers of DATA (tests/data/text), and byte-level ones with each normaliser and pre-tokenizer, on texts of many
scripts, with emoji, white space, line breaks, unassigned code points and what their added tokens are made of. Also
prints how fast each is on one core, with the tokenizer of GXP_PEER_TOKENIZER (a directory), if that is set.
Exit code 77: the package tokenizers is missing; sentencepiece is compared where it is installed.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import tokenizers
except ImportError:
    print("skipped: no package tokenizers")
    sys.exit(77)

PARTS = [" ", "  ", "    ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\x85", "\x00", "'s", "'LL", "'ſ", "don't", "the", "Hello", " world", "naïve", "café",
         "cafe\u0301", "ÅÄ", "ǅ", "İ", "ß", "Σας", "привет", "こんにちは", "世界", "한국어", "한", "हिन्दी", "עברית", "العربية", "ไทย", "0", "12", "12345", "½", "Ⅷ", "٣", "²",
         "!", "...", "//", "=>", "€", "$+<", "—", "_", "a_b", "😀", "👩\u200d👩\u200d👧", "🏳️\u200d🌈", "\U0001fa77", "\ue000", "\u0378", "\ufffd", "\ufeff", "\u0301", "\u0323", "ﬁ", "ｶﾞ",
         "x" * 30, "▁", "▁▁", "##", "</w>", "<0x41>", "\U0001d400", "ĠĊ", "  \n  ", "\n\n\n", "def f(x):\n    return x\n"]


def random_texts(seed, count, extra):
    draw = random.Random(seed)
    for _ in range(count):
        parts = [draw.choice(extra) if extra and draw.random() < 0.15 else draw.choice(PARTS) if draw.random() < 0.9 else
                 chr(draw.choice([draw.randrange(0x20, 0xd800), draw.randrange(0x10000, 0x110000), draw.randrange(0x20, 0x250)]))
                 for _ in range(draw.randrange(1, 40))]
        yield "".join(parts)


def framed(texts):
    return b"".join(struct.pack("<I", len(text)) + text for text in (text.encode() for text in texts))


def gxp_ids(program, path, texts):
    made = subprocess.run([program, path], input=framed(texts), stdout=subprocess.PIPE, check=True).stdout
    ids, at = [], 0
    while at < len(made):
        count = struct.unpack_from("<I", made, at)[0]
        ids.append(list(struct.unpack_from(f"<{count}i", made, at + 4)))
        at += 4 + 4 * count
    return ids


def compare(name, program, path, texts, encode):
    wrong = 0
    for text, ours in zip(texts, gxp_ids(program, path, texts)):
        theirs = encode(text)
        if ours != theirs:
            wrong += 1
            if wrong <= 3:
                print(f"{name}: {text!r}: {ours}, not {theirs}")
    print(f"{name}: {len(texts)} texts, {wrong} differ")
    return wrong


def family_encoder(folder):
    if (folder / "tokenizer.json").exists():
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        added = [token["content"] for token in json.loads((folder / "tokenizer.json").read_text())["added_tokens"]]
        return added, lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    if (folder / "tokenizer.model").exists():
        try:
            import sentencepiece
        except ImportError:
            return None
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
        return ["<s>", "<unk>", "<start_of_turn>"], model.encode
    return None


def families(program, data):
    wrong = 0
    for folder in sorted((data / "tokenizers").iterdir()):
        if "verdict" in json.loads((folder / "expected.json").read_text()) or folder.name in ("sp_unigram", "sp_bpe_nfkc"):
            continue
        found = family_encoder(folder)
        if found is None:
            continue
        extra, encode = found
        texts = [text.replace("\0", "") if folder.name.startswith("sp") else text for text in random_texts(1, 1500, extra)]
        wrong += compare(folder.name, program, folder, texts, encode)
    return wrong


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
SPLITS = [{"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
          for pattern in ({"String": " "}, {"Regex": r"\s+|[^\W\d]+"}, {"Regex": r"x*"}, {"Regex": r"\b\w|$"}, {"Regex": r"[\p{L}&&[^a-m]]+|\p{Han}{2}+"})
          for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous") for invert in (False, True)]
STEPS = SPLITS + [{"type": "Digits", "individual_digits": True}, {"type": "Digits", "individual_digits": False}, {"type": "Punctuation"},
                  {"type": "Punctuation", "behavior": "Contiguous"}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"},
                  {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
                  {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}]
NORMALIZERS = [{"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents")] + [
    {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Prepend", "prepend": "é"}, {"type": "Replace", "pattern": {"Regex": r"\s+|x+"}, "content": "-"},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "NFC"}]}]


def step_combinations(program, data):
    base = json.loads((data / "tokenizers/gpt2/tokenizer.json").read_text())
    base["added_tokens"].append({"id": 1001, "content": "É x", "single_word": False, "lstrip": True, "rstrip": False, "normalized": True, "special": False})
    every = "".join(f"{chr(code)}\n" for code in range(1, 0x110000) if not 0xd800 <= code < 0xe000)
    marked = "".join(f"a\u0301{chr(code)}\u0323\n" for code in range(0x300, 0x20000) if not 0xd800 <= code < 0xe000)
    wrong = 0
    cases = [(step, None) for step in NORMALIZERS] + [(None, step) for step in STEPS] + [({"type": "NFC"}, step) for step in STEPS[-3:]]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "tokenizer.json"
        for normalizer, step in cases:
            base["normalizer"] = normalizer
            base["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [step, BYTE_LEVEL] if step else [BYTE_LEVEL]}
            path.write_text(json.dumps(base))
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
            texts = list(random_texts(2, 150, ["É x", "e\u0301 x"])) + [every[:200000], every[-200000:]] + ([every, marked] if normalizer else [])
            wrong += compare(json.dumps(normalizer or step, ensure_ascii=False), program, path, texts,
                             lambda text: tokenizer.encode(text, add_special_tokens=False).ids)
    return wrong


def speed(program, data):
    folder = Path(os.environ.get("GXP_PEER_TOKENIZER", data / "tokenizers/gpt2"))
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for name in ("prose.txt", "code.txt", "scripts.bin"):
        text = (data / "corpora" / name).read_bytes().decode(errors="replace") * 20
        texts = [text[at:at + 8192] for at in range(0, len(text), 8192)]
        megabytes = len(text.encode()) / 1e6
        ours = float(subprocess.run([program, folder, "3"], input=framed(texts), stdout=subprocess.PIPE, check=True).stdout)
        theirs = min(timed(lambda: tokenizer.encode_batch_fast(texts, add_special_tokens=False)) for _ in range(3))
        print(f"{folder.name}, {name}: gxp {megabytes / ours:.1f} MB/s, tokenizers {megabytes / theirs:.1f} MB/s on one core")


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    program, data = sys.argv[1], Path(sys.argv[2])
    wrong = families(program, data) + step_combinations(program, data)
    speed(program, data)
    sys.exit(1 if wrong else 0)


main()
