#!/usr/bin/env python3
"""Chat templates made at random, and those of the tests' table: gxp renders what jinja2 renders, set up by transformers.

  tests/text/peers/chat_templates.py gxp_render_template [SEED [TEMPLATES]]

gxp may refuse what it does not support, by name, and then says so; it never renders something else, and fails where
jinja2 fails. Ends with 77 where jinja2 or transformers is missing."""
import json
import pathlib
import random
import subprocess
import sys
import warnings

warnings.simplefilter("ignore", SyntaxWarning)
try:
    import jinja2
    import transformers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "data" / "text"))
import jinja_snippets

NAMES = ["n", "x", "s", "u", "l", "t", "d", "e", "nil", "yes", "m", "p", "nope", "ns", "a", "b", "i", "loop.index", "loop.first", "loop.last", "loop.index0"]
FILTERS = ["trim", "length", "tojson", "upper", "lower", "title", "capitalize", "first", "last", "list", "string", "int", "float", "abs", "reverse", "sort", "join", "join(', ')", "default('z')",
           "default('z', true)", "items", "replace('a', 'bc')", "map('string')", "map(attribute='role')", "selectattr('role', 'equalto', 'user')", "rejectattr('role')", "select", "reject('none')",
           "tojson(indent=2)", "indent(2)", "indent(3, true, true)", "dictsort", "trim('a ')", "map('upper')", "select('string')", "count", "wordcount", "e", "safe", "escape", "forceescape", "round", "round(1)", "round(0, 'ceil')", "round(2, 'floor')", "unique", "unique(true)", "sum", "sum(start=2)", "format", "format(1)", "format('a', 2)", "format(a=1)"]
METHODS = ["strip()", "lstrip('A ')", "rstrip()", "split()", "split(' ')", "split('a', 1)", "rsplit(none, 1)", "startswith('a')", "endswith(('t', \"'\"))", "upper()", "title()", "replace('T', '')", "find('e')", "count('t')",
           "items()", "keys()", "values()", "get('a')", "get('q', 1)", "splitlines()", "removeprefix('A')", "role", "content", "k", "a", "b", "items", "zfill(4)", "index('e')", "isdigit()", "isalpha()", "isalnum()", "format(1)", "format('x', a=2)"]
TESTS = ["defined", "not defined", "none", "not none", "string", "mapping", "iterable", "sequence", "number", "integer", "boolean", "true", "false", "odd", "even", "divisibleby(2)", "equalto(1)", "eq 'a'", "in [1, 'a']",
         "not in l", "gt 1", "callable", "undefined", "float"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "and", "or", "in", "not in"]
LITERALS = ["1", "0", "-3", "2.5", "'a'", "'Ab c'", "\"it's\"", "''", "true", "none", "[]", "[1, 'b', none]", "(1, 2)", "{}", "{'a': 1, 'c': [2]}", "'\\n'", "range(3)", "namespace(a=1)", "dict(q=2)", "'é'", "'%s'", "'%d|%5s'", "'{}{a}'", "'{0}'", "'12'"]
BLANKS = ["", " ", "\n", "\n  ", "x", "  \n\n", "\t", "y z\n", "é", "\u00a0"]


# jinja2's filters that give generators look at what they are given when an item is taken from them, gxp's at once.
REFUSALS = ["not supported", "is supported", "64 bits", "cannot be iterated over", "items takes a dict", "cannot be the key of a dict"]


class Maker:
    """Random templates of this grammar."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, choices):
        return self.random.choice(choices)

    def expression(self, depth):
        kind = self.random.random()
        if depth <= 0 or kind < 0.3:
            return self.pick(NAMES) if self.random.random() < 0.65 else self.pick(LITERALS)
        inner = lambda: self.expression(depth - 1)
        if kind < 0.45:
            return f"{inner()} {self.pick(OPERATORS)} {inner()}"
        if kind < 0.62:
            return f"{inner()}|{self.pick(FILTERS)}"
        if kind < 0.72:
            return f"({inner()}).{self.pick(METHODS)}"
        if kind < 0.79:
            return f"({inner()})[{self.pick(['0', '-1', '1', chr(39) + 'a' + chr(39), '1:', ':2', '::-1', '-2:', '::2', inner()])}]"
        if kind < 0.86:
            return f"({inner()}) is {self.pick(TESTS)}"
        if kind < 0.9:
            return f"{inner()} if {inner()} else {inner()}"
        if kind < 0.93:
            return f"not {inner()}"
        if kind < 0.96:
            return f"f({inner()}, b={inner()})"
        return f"({inner()})"

    def begin(self):
        return self.pick(["{%", "{%", "{%-", "{%+"])

    def end(self):
        return self.pick(["%}", "%}", "-%}", "+%}"])

    def tag(self, text):
        return f"{self.begin()} {text} {self.end()}"

    def statement(self, depth, in_loop):
        kind = self.random.random()
        body = lambda loop=in_loop: self.body(depth - 1, loop)
        if depth <= 0 or kind < 0.4:
            return f"{self.pick(['{{', '{{-'])} {self.expression(2)} {self.pick(['}}', '-}}'])}"
        if kind < 0.55:
            other = self.tag("else") + body() if self.random.random() < 0.4 else ""
            return self.tag(f"if {self.expression(2)}") + body() + other + self.tag("endif")
        if kind < 0.72:
            test = f" if {self.expression(1)}" if self.random.random() < 0.2 else ""
            target = self.pick(["i", "i", "i", "a, b", "n"])
            other = self.tag("else") + body() if self.random.random() < 0.2 else ""
            items = self.pick(["l", "t", "m", "d", "d.items()", "range(3)", "s", "m[::-1]", f"({self.expression(1)})"])
            return self.tag(f"for {target} in {items}{test}") + body(True) + other + self.tag("endfor")
        if kind < 0.84:
            return self.tag(f"set {self.pick(['a', 'b', 'n', 'ns.a', 'ns.q', 'a, b'])} = {self.expression(2)}")
        if kind < 0.88:
            return self.tag(f"set {self.pick(['a', 'b'])}{self.pick(['', ' | trim', ' | upper'])}") + body(False) + self.tag("endset")
        if kind < 0.9:
            return self.tag(f"with {self.pick(['a', 'n'])} = {self.expression(2)}, b = {self.expression(1)}") + body() + self.tag("endwith")
        if kind < 0.92:
            return self.tag("generation") + body(False) + self.tag("endgeneration")
        if kind < 0.95:
            return f"{self.pick(['{#', '{#-'])} c\n {self.pick(['#}', '-#}'])}"
        if kind < 0.97 and in_loop:
            return self.tag(self.pick(["break", "continue"]))
        return self.tag("raw") + "{{ x }} {% y" + self.tag("endraw")

    def body(self, depth, in_loop):
        return "".join(self.pick(BLANKS) + self.statement(depth, in_loop) for _ in range(self.random.randint(1, 3))) + self.pick(BLANKS)

    def template(self):
        macro = self.tag("macro f(a, b=2)") + self.body(1, False) + self.tag("endmacro") if self.random.random() < 0.3 else ""
        return "{% set ns = namespace(a=0) %}" + macro + self.body(3, False)


def requests(seed, count):
    yield from jinja_snippets.requests()
    maker = Maker(seed)
    for _ in range(count):
        yield {"template": maker.template(), "variables": jinja_snippets.DATA}


def compare(request, found):
    """"", or what is wrong."""
    expected = jinja_snippets.render(request)
    if "error" in expected:
        return "" if "error" in found else f"jinja2 fails: {expected['error']}\n  gxp: {found['text']!r}"
    if "error" in found:
        is_refusal = any(words in found["error"] for words in REFUSALS) or " object at 0x" in expected["text"]
        return "refused" if is_refusal else f"jinja2: {expected['text']!r}\n  gxp fails: {found['error']}"
    if " object at 0x" in expected["text"]:
        return f"jinja2 has printed an address\n  gxp: {found['text']!r}"
    return "" if found == expected else f"jinja2: {expected}\n  gxp: {found}"


def main():
    seed, count = (int(word) for word in (sys.argv[2:] + ["1", "20000"][len(sys.argv[2:]):])[:2])
    wrong = refused = rendered = 0
    with subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8") as gxp:
        for request in requests(seed, count):
            gxp.stdin.write(json.dumps(request, ensure_ascii=False) + "\n")
            gxp.stdin.flush()
            found = json.loads(gxp.stdout.readline())
            verdict = compare(request, found)
            refused += verdict == "refused"
            rendered += verdict == "" and "text" in found
            if verdict not in ("", "refused"):
                wrong += 1
                if wrong <= 40:
                    print(f"{request['template']!r}\n  {verdict}")
        gxp.stdin.close()
    print(f"chat_templates: jinja2 {jinja2.__version__}, transformers {transformers.__version__}, seed {seed}: "
          f"{rendered} rendered alike, {refused} refused by name, {wrong} wrong")
    sys.exit(wrong > 0 or rendered < count // 10)


main()
