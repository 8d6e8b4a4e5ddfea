#!/usr/bin/env python3
"""Writes jinja_snippets.json: short templates, and templates with the constructs of the well-known families, with what
the real jinja2 renders, set up by transformers. tests/text/peers/chat_templates.py uses the same table.

  tests/data/text/jinja_snippets.py > tests/data/text/jinja_snippets.json
"""
import json
import pathlib

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "It's \"sunny\" or <not> & so on — é.",
          "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "A city", "enum": ["Rome", "Oslo"]},
                         "days": {"type": ["integer", "null"], "default": 3}, "flags": {"type": "array", "items": {"type": "boolean"}}},
                         "required": ["city"]}}},
         {"type": "function", "function": {"name": "stop", "description": "", "parameters": {"type": "object", "properties": {}}}}]
CALL = {"type": "function", "id": "call_1234", "function": {"name": "get_weather", "arguments": {"city": "Rome", "days": 2, "flags": [True, None, 1.5]}}}
CHAT = [{"role": "system", "content": " Be brief. \n"}, {"role": "user", "content": "Weather in Rome?"},
        {"role": "assistant", "content": "<think>\nlook it up\n</think>\n\nI look.", "tool_calls": [CALL]},
        {"role": "tool", "name": "get_weather", "tool_call_id": "call_1234", "content": "{\"t\": 21}"},
        {"role": "tool", "content": "again"}, {"role": "assistant", "content": "21 degrees.", "reasoning_content": "\nsum\n"},
        {"role": "user", "content": "Thanks — 你好"}, {"role": "assistant", "content": "Welcome."}]
PLAIN = [{"role": "user", "content": "  hi\u00a0\u2028"}, {"role": "assistant", "content": "hello\n"}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}, {"role": "assistant", "content": "c"}]

# Templates that need no more than DATA.
DATA = {"n": 3, "x": 2.5, "s": "A  Text, 'quoted'", "u": "Ünï — 你好 🇫🇷", "l": [3, 1, 2], "t": ["b", "A", "c"], "d": {"b": 1, "a": {"k": [1, 2]}},
        "e": "", "nil": None, "yes": True, "m": PLAIN, "tools": TOOLS, "long": 1234567890123, "p": {"items": 7, "type": "q"}}
SNIPPETS = [
    # Blanks and tags.
    "a\n  {% if yes %}  \n  b\n  {% endif %}\nc\n", "a {%- if yes -%}  b  {%- endif -%} c", "  {%+ if yes %}x{% endif %}\n", "{% if yes +%}\nx{% endif %}",
    "a\n{# c #}\nb{#- c -#}  d\n  {# e #} f", "{{ n }}\n{{ n }}\n\n", "{{- n -}}\n  x", "a\r\nb\rc\n\n", "{% raw %}{{ n }}{% endraw %}|{%- raw -%}  {% x %}  {%- endraw -%} z",
    "  {% raw %} a {% endraw %}\n b", "{% set a = 1 %}\n\n{% set b = 2 %}\n{{ a }}{{ b }}", "\n{% for i in l %}\n {{ i }}\n {% endfor %}\n", "{{ '}}' }}{{ \"%}\" }}{{ {'a': {'b': 1}}}}",
    "x {{ n }} y{# #}\n", "{#\n\n#}{{ n }}", "\t{% if yes %}\tx\t{% endif %}\t", "\u00a0{%- if yes -%}\u2003z{% endif %}", "a\n\u3000{% if yes %}b{% endif %}",
    # Literals.
    r"""{{ "a\n\t\\\'\"\x41\u00e9\U0001F600\101\q" }}""", "{{ 'a' 'b' \"c\" }}", "{{ 1 }} {{ -2 }} {{ 1.50 }} {{ 1e3 }} {{ 2.5e-7 }} {{ 1e22 }} {{ 123456789.125 }}",
    "{{ true }}{{ True }}{{ none }}{{ None }}{{ false }}", "{{ [1, 'a', none, [true], (), (1,), (1, 2)] }}", "{{ {'a': 1, 'b': ['it\\'s', \"q\"]} }}", "{{ [] }}{{ {} }}{{ () }}",
    "{{ 1, 2 }}", "{{ ['a\\nb\\\\', 'tab\\t', \"'\", '\"', \"'\\\"\"] }}", "{{ 'line\nbreak' }}",
    # Operators.
    "{{ 1 + 2 * 3 - 4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2.5 * 2 }} {{ 'ab' * 3 }} {{ [1] * 2 }}", "{{ 1 ~ 'a' ~ none ~ true ~ 1.0 ~ [1] }}",
    "{{ 'a' + 'b' }} {{ [1] + [2] }} {{ (1,) + (2,) }}", "{{ 'a' + 1 }}", "{{ 1 + none }}", "{{ 1 == 1.0 }} {{ true == 1 }} {{ '1' == 1 }} {{ [1] == [1] }} {{ [1] == (1,) }} {{ {'a': 1} == {'a': 1} }} {{ none == false }}",
    "{{ 1 < 2 <= 2 != 3 > 1 >= 1 }}", "{{ 'a' < 'b' }} {{ 'Z' < 'a' }}", "{{ 1 < 'a' }}", "{{ 'a' in 'abc' }} {{ 2 in l }} {{ 'b' in d }} {{ 'z' not in d }} {{ 1 in d }} {{ not 'a' in 'b' }}", "{{ 1 in 'abc' }}",
    "{{ none in none }}", "{{ l in d }}", "{{ d.get(d) }}", "{{ d[l] is defined }} {{ (1,) in d }}", "{{ yes and n }} {{ e or 'x' }} {{ not e }} {{ e and 1/0 }} {{ n or nope.x }}", "{{ 'a' if yes else 'b' }}{{ 'a' if e }}{{ 'a' if e else 'b' if e else 'c' }}", "{{ -n|abs }} {{ -(n)|abs }} {{ +n }}",
    "{{ 'a' + s|upper ~ 'c' }}", "{{ (n + 1) * 2 }} {{ n is odd and n is not even }} {{ n is divisibleby 3 }} {{ n is divisibleby(2) }}", "{{ 1 / 0 }}", "{{ 9223372036854775807 }} {{ -5 % -3 }} {{ 5 % -3 }}", "{{ true + true }} {{ 'x' * true }}",
    "{{ x * 2 }} {{ x + 1 }} {{ 1 - x }} {{ 5 / x }}",
    # Powers, sums, roundings, formats.
    "{{ 2 ** 3 }} {{ n ** 2 }} {{ 2 ** 3 ** 2 }} {{ 2 ** -1 }} {{ 2.5 ** 2 }} {{ 4 ** 0.5 }} {{ 0 ** 0 }} {{ 1 ** 99999999999 }} {{ true ** 2 }} {{ n ** 2 * 2 }} {{ -n ** 2 if e }}", "{{ 0 ** -1 }}", "{{ 10.0 ** 400 }}", "{{ 'a' ** 2 }}", "{{ nope ** 2 }}", "{{ 2 ** 62 }} {{ 3 ** 39 }} {{ 10 ** 18 }}",
    "{{ l|sum }} {{ []|sum }} {{ [1, true]|sum }} {{ [[1], [2]]|sum(start=[]) }} {{ [{'a': 2}, {'a': 3}]|sum('a', 10) }} {{ [{'a': {'b': 2}}]|sum(attribute='a.b') }}", "{{ ['a']|sum }}", "{{ ['a']|sum(start='') }}", "{{ 5|sum }}", "{{ nope|sum }}", "{{ m|sum(attribute='role') }}",
    "{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 1.005|round(2) }} {{ -0.4|round }} {{ (-0.4)|round }} {{ 7|round }} {{ 7|round(2) }} {{ true|round }} {{ 42.55|round(1) }} {{ 1e20|round }} {{ 0.1|round(15) }} {{ 123456.789|round(1) }}",
    "{{ 2.1|round(method='ceil') }} {{ 2.9|round(0, 'floor') }} {{ 42.55|round(1, 'floor') }} {{ 42.51|round(1, 'ceil') }} {{ 5|round(0, 'ceil') }} {{ (-2.1)|round(0, 'floor') }} {{ (-2.1)|round(0, 'ceil') }} {{ (-0.1)|round(0, 'ceil') }} {{ 1.1|round(3, 'ceil') }} {{ 5|round(2, 'floor') }}", "{{ 2.5|round(0, 'up') }}", "{{ 'a'|round }}", "{{ nope|round }}", "{{ none|round }}",
    "{{ [3, 1, 3, 'a', 'A', 1.0, true, none, none]|unique|list }} {{ 'abAB'|unique|join }} {{ ['a', 'A']|unique(case_sensitive=true)|list }} {{ ['a', 'A']|unique(true)|join }} {{ m|unique(attribute='role')|map(attribute='role')|list }} {{ [{'a': 1, 'b': 2}, {'a': 1, 'b': 3}]|unique(attribute='a')|map(attribute='b')|list }} {{ []|unique|list }}", "{{ [[1]]|unique|list }}", "{{ [d]|unique|list }}", "{{ 3|unique|list }}", "{{ [(1,), (1,)]|unique|list }}",
    "{{ '%s and %s'|format('a', 1) }} {{ '%d%%'|format(7) }} {{ '%5d|%-5d|%05d|%+d'|format(1, 2, 3, 4) }} {{ '%s'|format([1]) }} {{ '%(a)s-%(b)03d'|format(a='x', b=5) }} {{ '%.2f %8.3f %-8.1f|'|format(1.005, 2.5, 3) }} {{ '%s'|format('é') }} {{ '%5s|%-5s|%.2s|'|format('é', 'é', '日本語') }} {{ 'x'|format }} {{ '%s %s'|format(none, true) }} {{ '%d %i'|format(2.9, true) }} {{ '% d'|format(3) }} {{ '%f'|format(1) }} {{ 5|format }}",
    "{{ '%s'|format }}", "{{ '%s'|format(1, 2) }}", "{{ '%d'|format('1') }}", "{{ '%'|format(1) }}", "{{ '%y'|format(1) }}", "{{ '%s'|format(1, a=2) }}", "{{ '%(q)s'|format(a=2) }}", "{{ '%(a)s'|format(1) }}", "{{ 'a'|format(b=1) }}", "{{ '%s'|format(a=1) }}", "{{ '%s' % 'a' }} {{ '%s-%s' % ('a', 2) }} {{ 'x' % [] }} {{ '%(k)s' % {'k': 3} }} {{ '%s' % [1] }} {{ '%d' % n }} {{ 'x' % {} }} {{ 'x' % () }}", "{{ 'x' % 1 }}", "{{ '%s' % nope }}{{ 'x' % nope }}{{ 'x' % range(2) }}", "{{ 'x' % d.items() }}", "{{ 'x' % l|map('string') }}", "{{ '%s %s' % 'a' }}", "{{ '%s'|format(nope) }}",
    "{{ '{} {}'.format('a', 1) }} {{ '{1}{0}{1}'.format('a', 'b') }} {{ '{x}{y}'.format(x=1, y=none) }} {{ '{{}}{}'.format(2.5) }} {{ ''.format() }} {{ '{}'.format([1, 'a']) }} {{ '{}{n}'.format(true, n='é') }} {{ '{}'.format(1, 2) }}", "{{ '{}'.format() }}", "{{ '{0}{}'.format(1, 2) }}", "{{ '{}{0}'.format(1, 2) }}", "{{ '{'.format(1) }}", "{{ '}'.format(1) }}", "{{ '{q}'.format(a=1) }}", "[{{ '{}'.format(nope) }}]", "{{ '{{{}}}'.format(1) }} {{ 'a}}b{{'.format() }}",
    "{{ '12'.isdigit() }}{{ ''.isdigit() }}{{ '1a'.isdigit() }}{{ '-1'.isdigit() }}{{ '1.5'.isdigit() }}{{ '12'.isnumeric() }}{{ '12'.isdecimal() }}{{ 'aZ'.isalpha() }}{{ 'a1'.isalpha() }}{{ 'a1'.isalnum() }}{{ 'a 1'.isalnum() }}{{ 'a-é'.isalnum() }}{{ '@['.isalpha() }}",
    "{{ '<a href=\"x\">\\'&amp;'|e }} {{ 5|escape }} {{ none|e }} {{ nope|e }}{{ '&'|forceescape }} {{ [1]|e }} {{ '<'|e|e }} {{ '<'|e|forceescape }} {{ '<'|safe|e }} {{ '<'|safe|string|e }} {{ nope|safe }}{{ 5|safe }}",
    "{{ '<' ~ ('<'|e) ~ (d|tojson|safe) }} {{ '<' + ('>'|safe) + '&' }} {{ ('<'|safe) + 'a' + '\"' }} {{ ('a'|safe) + ('<'|safe) }} {{ (('<' + ('>'|safe)) ~ '<') + '<' }}", "{{ ('a'|safe) + 1 }}", "{{ 1 + ('a'|safe) }}",
    "{% set a = d|tojson|safe if yes else s %}{{ a }}|{{- a is string }}{{ a is mapping }}{{ a == d|tojson }}{{ a|length }}{{ a|tojson }}{{ 'b' in a }}{{ a and 1 }}{{ [a]|tojson }}{{ [a, 1]|join('<') }}{% for c in 'a<'|e %}{{ c + '<' }}{% endfor %}{{ nope|default('<'|safe) + '<' }}",
    "{% macro f(x) %}{{ x }}<{% endmacro %}{{ f('<'|e) + '<' }}{% set a %}{{ '<'|e }}{% endset %}{{ a + '<' }}{% set ns = namespace(a='<'|e) %}{{ ns.a + '<' }}{% set b = {'k': '&'|e} %}{{ b.k + '&' }}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% set n = 9 %}{{ n }}{% endwith %}{{ n }}{{ a }}", "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% for i in l %}{% with j = i %}{% if j == 1 %}{% continue %}{% endif %}{{ j }}{{ loop.index }}{% endwith %}{% endfor %}", "{% with a = 1 %}", "{% with a %}{% endwith %}", "{% with a = 1 b = 2 %}{% endwith %}", "{% with ns = namespace(a=1) %}{% set ns.a = 2 %}{{ ns.a }}{% endwith %}", "{% with a = 1, %}{% endwith %}",
    "{% call f() %}x{% endcall %}",
    # Undefined.
    "[{{ nope }}]{% if nope %}a{% else %}b{% endif %}{% for i in nope %}c{% endfor %}{{ nope is defined }}{{ nope is undefined }}", "{{ nope.x }}", "{{ d.nope.x }}", "{{ d.nope }}|{{ d['nope'] }}|{{ l[9] }}|{{ n.x }}|{{ nil.x }}|{{ nil['x'] }}|{{ s.x }}",
    "{{ nope + 'a' }}", "{{ nope ~ 'a' }}", "{{ nope|length }} {{ nope|default('d') }} {{ e|default('d') }} {{ e|default('d', true) }} {{ nope|d }}", "{{ nope() }}", "{{ nope == nope2 }} {{ nope == '' }} {{ nope != none }} {{ 'a' in nope }} {{ nope in [1] }}",
    "{{ nope|trim }}{{ nope|upper }}{{ nope|list }}{{ nope|join }}{{ nope|string }}{{ nope|first }}", "{{ nope|tojson }}", "{{ nope < 1 }}", "{{ nope[0] }}", "{{ nope is iterable }}{{ nope is sequence }}{{ nope is string }}{{ nope is none }}{{ nope is mapping }}",
    "{{ [nope] }}", "{{ nope|int }}", "{{ -nope }}", "{{ l[nope] is defined }}", "{{ 'a' if nope.x is defined }}", "{{ (1 if e) is defined }}", "{{ (1 if e).x }}", "{{ nope|items|list }}",
    # Attributes and items.
    "{{ d.b }} {{ d['b'] }} {{ d.a.k[1] }} {{ d['a']['k'][-1] }} {{ l[0] }} {{ l[-1] }} {{ l.0 }} {{ s[0] }} {{ s[-1] }} {{ u[1] }} {{ u[-2] }}", "{{ p['items'] }} {{ p.items is callable }} {{ p.items() | list }}", "{{ d['keys'] is callable }}",
    "{{ p['type'] }}", "{{ l[1:] }} {{ l[:2] }} {{ l[::-1] }} {{ l[-2:] }} {{ l[5:] }} {{ l[:-1] }} {{ l[::2] }} {{ l[2:0:-1] }} {{ l[-9:9] }}", "{{ s[2:5] }} {{ s[::-1] }} {{ u[1:4] }} {{ u[::-1] }} {{ s[:none] }}", "{{ (1, 2, 3)[1:] }} {{ n[0] is defined }}", "{{ d[1:] }}", "{{ nil[1:] }}", "{{ nope[1:] }}",
    "{{ l[::0] }}", "{{ l['a':] }}", "{{ l[true] }} {{ l[1.0] is defined }}", "{{ l.append(1) }}",
    # Scopes.
    "{% set a = 1 %}{% for i in l %}{{ a }}{% set a = a + i %}{{ a }} {% endfor %}{{ a }}", "{% if yes %}{% set a = 2 %}{% endif %}{{ a }}", "{% for i in l %}{% if loop.first %}{% set a = 9 %}{% endif %}[{{ a }}]{% endfor %}{{ a }}",
    "{% set ns = namespace(a=1, b='x') %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ ns['a'] }}", "{% set d.b = 3 %}", "{% set ns = namespace() %}{% set ns.x = [] %}{% set ns.x = ns.x + ['q'] %}{{ ns.x }}{{ ns.y is defined }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d2) = [3, 4] %}{{ c }}{{ d2 }}", "{% set a, b = [1] %}", "{% set a %}x{{ n }}\n y{% endset %}[{{ a }}]", "{% set a | trim | upper %}  q {% endset %}[{{ a }}]", "{% set n = n + 1 %}{{ n }}",
    "{% for i in l %}{% set z = i %}{% endfor %}{{ z is defined }}", "{% for n in l %}{{ n }}{% endfor %}{{ n }}", "{% set a = 1 %}{% for i in [1] %}{% for j in [1] %}{% set a = 5 %}{{ a }}{% endfor %}{{ a }}{% endfor %}{{ a }}", "{% set ns = namespace(d) %}{{ ns.b }}", "{% set ns = namespace(_a=1) %}",
    "{% set ns = namespace() %}{% set ns._x = 1 %}",
    # Loops.
    "{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.depth }}{{ loop.previtem }}{{ loop.nextitem }} {% endfor %}", "{% for i in [] %}x{% else %}none{% endfor %}",
    "{% for i in l if i != 1 %}{{ loop.index }}:{{ i }}{% if not loop.last %},{% endif %}{% else %}none{% endfor %}", "{% for i in l if i > 9 %}x{% else %}none{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}{% for c in 'aé' %}{{ c }},{% endfor %}",
    "{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% if i == 2 %}{% break %}{% endif %}{% endfor %}", "{% for i in l %}{% for j in l %}{% if j == 1 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{{ loop.index }}{% endfor %}", "{% for i in none %}{% endfor %}", "{% for i in l %}{% break %}{% else %}x{% endfor %}{% for i in l %}{% continue %}{% else %}y{% endfor %}{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{% else %}z{% endfor %}", "{% for i in 5 %}{% endfor %}",
    "{% for a, b in [[1, 2], (3, 4)] %}{{ a }}{{ b }}{% endfor %}", "{% for a, b in [[1, 2, 3]] %}{% endfor %}", "{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}{{ range(4)|list }}{{ range(3)|length }}{{ 2 in range(3) }}{{ range(9)[3] }}", "{{ range(1000000) }}",
    "{% set ns = namespace(stop=false) %}{% for i in l if not ns.stop %}{{ i }}{% set ns.stop = true %}{% endfor %}", "{% set ns = namespace(stop=false) %}{% for i in l if not ns.stop %}{{ i }}{{ loop.last }}{% set ns.stop = true %}{% endfor %}", "{% set ns = namespace(k=0) %}{% for i in [1,2,3,4,5] if i > ns.k %}{{ i }}/{{ loop.length }}{% set ns.k = 9 %}{% endfor %}",
    "{% for i in m[::-1] %}{{ i.role }}{{ i['content']|trim }}{% endfor %}", "{% for x in d.values() %}{{ x }}{% endfor %}{{ d.keys()|list }}{{ d|length }}{{ d.items()|length }}", "{% for i in l|reverse %}{{ i }}{% endfor %}{{ l|reverse|list }}", "{{ loop is defined }}", "{% for i in (l if yes else []) %}{{ i }}{% endfor %}",
    "{% for i in l %}{% for j in [1] %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }}{% endfor %}", "{% set g = l|map('string') %}{% for i in g %}{{ i }}{% break %}{% endfor %}|{% for i in g %}{{ i }}{% endfor %}|{{ g|list }}", "{% for i in l %}{% else %}{% endfor %}{% for i in [] %}{% else %}{% set q = 1 %}{% endfor %}{{ q }}",
    # Macros.
    "{% macro f(a, b=2, c='z') %}<{{ a }}{{ b }}{{ c }}>{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(1, c='q') }}{{ f(a=5) }}{{ f() }}", "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", "{% macro f(a) %}{{ a }}{{ n }}{% set q = 1 %}{% endmacro %}{{ f(7) }}{{ q }}",
    "{% macro f(k) %}{% if k > 0 %}{{ k }}{{ f(k - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% macro f() %}{{ later }}{% endmacro %}{% set later = 4 %}{{ f() }}", "{% macro f(x) %}  {{ x }} {% endmacro %}[{{ f('a') | trim }}]{{ f('b') ~ 'c' }}", "{{ f() }}{% macro f() %}{% endmacro %}", "{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}",
    "{% macro f(x) %}{% for k in x %}{{ loop.index }}{{ k }}{% endfor %}{% endmacro %}{% for i in [1] %}{{ f(l) }}{% endfor %}", "{% macro f(k) %}{{ f(k + 1) }}{% endmacro %}{{ f(0) }}", "{% macro f() %}{{ loop is defined }}{% endmacro %}{% for i in [1] %}{{ f() }}{% endfor %}", "{% macro f(n) %}{{ n }}{% endmacro %}{{ f(1) }}{{ n }}",
    # Filters.
    "[{{ '  a b\\u00a0\\x1c '|trim }}] [{{ 'xxaxx'|trim('x') }}] [{{ '\\u200b a'|trim }}]", "{{ s|length }} {{ u|length }} {{ l|count }} {{ d|length }}", "{{ s|upper }} {{ s|lower }} {{ s|title }} {{ 'hELLO wORLD'|capitalize }} {{ \"it's a-b (c) x\"|title }}", "{{ l|join }} {{ l|join(', ') }} {{ m|join('/', attribute='role') }} {{ 'abc'|join('-') }} {{ [1, none, 'a']|join(d=' ') }}",
    "{{ l|first }}{{ l|last }}{{ 'abc'|first }}{{ 'abc'|last }}{{ d|first }}{{ []|first }}{{ []|last is defined }}", "{{ l|sort }} {{ t|sort }} {{ t|sort(case_sensitive=true) }} {{ l|sort(reverse=true) }} {{ m|sort(attribute='role')|map(attribute='role')|list }}", "{{ [1, 'a']|sort }}", "{{ d|dictsort }} {{ {'B': 1, 'a': 2}|dictsort }} {{ {'x': 2, 'y': 1}|dictsort(by='value') }}",
    "{{ m|selectattr('role', 'equalto', 'user')|list|length }}{{ m|rejectattr('role', 'eq', 'user')|map(attribute='content')|list }}{{ m|selectattr('nope')|list }}",
    "{{ l|select('>', 1)|list }}{{ l|reject('odd')|list }}{{ [0, 1, '', 'a']|select|list }}{{ l|map('string')|join('+') }}{{ t|map('upper')|list }}{{ [[1], [2]]|map(attribute=0)|list }}{{ [d]|map(attribute='a.k.1')|list }}", "{{ m|selectattr('role', 'in', ['user', 'x'])|list|length }}", "{{ l|select('nope')|list }}",
    "{{ l|map('string')|length }}", "{{ 'a-b-c'|replace('-', '+') }} {{ 'aaa'|replace('a', 'b', 2) }} {{ 5|replace('5', '6') }}", "{{ '12'|int }} {{ ' 7 '|int }} {{ 'x'|int }} {{ 'x'|int(9) }} {{ '4.9'|int }} {{ -2.7|int }} {{ true|int }} {{ none|int }} {{ '1e2'|int }}", "{{ '1.5'|float }} {{ 3|float }} {{ 'x'|float }} {{ 'inf'|float }}",
    "{{ 'a\\nb\\n\\nc'|indent }}|{{ 'a\\nb'|indent(2, true) }}|{{ 'a\\n\\nb'|indent(width=1, blank=true) }}|{{ 'a\\nb'|indent('> ') }}", "{{ n|string + 'a' }}{{ none|string }}{{ true|string }}{{ l|string }}", "{{ 'abc'|list }}{{ d|list }}{{ d|items|list }}{{ 'abc'|reverse }}", "{{ n|length }}", "{{ x|abs }}{{ -4|abs }}", "{{ s|nope }}", "{{ s|trim(1, 2) }}", "{{ s|default }}",
    # tojson.
    "{{ tools|tojson }}", "{{ tools|tojson(indent=4) }}", "{{ d|tojson(indent=2, sort_keys=true) }}", "{{ d|tojson(separators=(',', ':')) }} {{ d|tojson(indent=1, separators=[', ', '=']) }}", "{{ [1.0, 1e22, 0.1, 1e-5, true, none, 'a\"\\\\\\n\\t\\x00\\x7f/é\\u2028', [], {}, ()]|tojson }}", "{{ {}|tojson(indent=2) }}{{ []|tojson(indent=2) }}{{ [[]]|tojson(indent=0) }}", "{{ d.items()|tojson }}", "{{ 'é<>&\\''|tojson }}{{ n|tojson }}{{ long|tojson }}{{ u|tojson(ensure_ascii=false) }}", "{{ (1, 'a')|tojson }}", "{{ d|tojson(indent='\\t') }}",
    "{{ 'x'|tojson|safe }}{{ tools[1]|tojson }}", "{{ range|tojson }}",
    # Tests.
    "{% for v in [1, 1.5, 'a', none, true, [1], (1,), {}, nope] %}{{ v is integer }} {{ v is float }} {{ v is number }} {{ v is string }} {{ v is none }} {{ v is boolean }} {{ v is iterable }} {{ v is sequence }} {{ v is mapping }} {{ v is true }} {{ v is false }} {{ v is defined }} {{ v is callable }}\n{% endfor %}",
    "{{ 1 is equalto 1 }} {{ 1 is eq(2) }} {{ 2 is in [1, 2] }} {{ 2 is not in [1, 2] }} {{ 'a' is ne 'b' }} {{ 3 is gt 2 }} {{ 3 is ge 3 }} {{ 1 is lt 2 }} {{ 1 is le 0 }} {{ none is sameas none }} {{ true is sameas true }} {{ 1 is sameas true }}", "{{ not n is none }} {{ n is not none and yes }}", "{{ n is defined if yes else 0 }}", "{{ n is nope }}", "{{ strftime_now is defined }}{{ range is callable }}{{ raise_exception is defined }}",
    # Methods.
    "[{{ '  a '.strip() }}] [{{ 'xxaxx'.lstrip('x') }}] [{{ 'abc'.rstrip('cb') }}] {{ 'éa'.strip('é') }} [{{ ' a '.lstrip() }}] [{{ ' a '.strip(none) }}]", "{{ 'a,b,,c'.split(',') }} {{ ' a  b c '.split() }} {{ ' a  b c '.split(none, 1) }} {{ ' a  b c '.rsplit(none, 1) }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ''.split(',') }} {{ ''.split() }} {{ 'a'.split(',')[-1] }} {{ 'a b'.split(none, 0) }} {{ 'a  b '.split(maxsplit=1) }}", "{{ 'a'.split('') }}",
    "{{ 'abc'.startswith('a') }} {{ 'abc'.endswith(('x', 'bc')) }} {{ 'abc'.startswith(('x',)) }} {{ 'abc'.startswith('') }}", "{{ 'abc'.startswith(1) }}", "{{ 'aBc'.upper() }} {{ 'aBc'.lower() }} {{ \"they're bill's\".title() }} {{ 'aB cD'.capitalize() }} {{ 'x1y'.title() }}", "{{ 'aXbX'.replace('X', '--') }} {{ 'aaa'.replace('a', 'b', 1) }} {{ 'abcabc'.find('c') }} {{ 'éc'.find('c') }} {{ 'abcabc'.rfind('c') }} {{ 'a'.find('z') }} {{ 'abcabc'.count('bc') }} {{ 'ab'.count('') }}",
    "{{ ', '.join(['a', 'b']) }} {{ '-'.join('abc') }}", "{{ ', '.join([1]) }}", "{{ 'abc'.removeprefix('a').removesuffix('c') }} {{ 'a\\nb\\r\\nc\\x1cd'.splitlines() }}", "{{ d.get('b') }} {{ d.get('z') }} {{ d.get('z', 5) }} {{ d.keys()|list }} {{ d.values()|list }} {{ d.items()|list }} {{ d.copy().b }}", "{{ d.get() }}", "{{ dict(a=1, b=l) }} {{ dict(d, c=2)|length }} {{ dict({'a': 3}).a }}",
    "{{ s.upper(1) }}", "{{ n.upper() }}", "{{ s() }}", "{{ raise_exception('no') }}", "{{ raise_exception('a' ~ n) }}", "{{ strftime_now('%Y')|length }}",
    # Generation blocks.
    "a{% generation %}b{{ n }}{% endgeneration %}\nc{% for i in l %}{% generation %}{{ i }}{% endgeneration %} {% endfor %}", "é{% generation %}ü{% endgeneration %}{% generation %}{% endgeneration %}x", "{% for i in m %}{% generation %}{% set q = i.role %}{{ loop.index }}{{ q }}{% endgeneration %}{{ q is defined }}{% endfor %}", "{%- generation -%} a {%- endgeneration -%} b",
    # Broken templates.
    "{{ n", "{% if yes %}x", "{% endif %}", "{% for i in l %}{% endif %}", "{{ n }", "{{ }}", "{{ 'a }}", "{% nope %}", "{{ n n }}", "{{ (n }}", "{{ n) }}", "{% if %}x{% endif %}", "{# a", "{% raw %}x", "{{ [1, }}", "{% set 1 = 2 %}", "{{ a. }}", "{% break %}", "{{ $ }}", "{% macro f(a=1, b) %}{% endmacro %}", "{{ f(a=1, 2) }}", "{% set a.b %}x{% endset %}", "{{ 1 is }}", "{{ x | }}", "{% else %}",
]

LLAMA = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}{%- set tools_in_user_message = true %}{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}{%- set date_string = "01 Jan 2025" %}{%- endif %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|head|>system<|/head|>\\n\\n" }}
{%- if builtin_tools is defined or tools is not none %}{{- "Environment: x\\n" }}{%- endif %}
{%- if builtin_tools is defined %}{{- "Tools: " + builtin_tools | reject('equalto', 'code') | join(", ") + "\\n\\n"}}{%- endif %}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}{{- "<|eot|>" }}
{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("no first user message") }}
    {%- endif %}
    {{- '<|head|>user<|/head|>\\n\\n' -}}
    {%- for t in tools %}{{- t | tojson(indent=4) }}{{- "\\n\\n" }}{%- endfor %}
    {{- first_user_message + "<|eot|>"}}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|head|>' + message['role'] + '<|/head|>\\n\\n'+ message['content'] | trim + '<|eot|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}{{- raise_exception("one call only") }}{%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {%- if builtin_tools is defined and tool_call.name in builtin_tools %}
            {{- "<|py|>" + tool_call.name + ".call(" }}
            {%- for arg_name, arg_val in tool_call.arguments | items %}
                {{- arg_name + '="' + arg_val | string + '"' }}{%- if not loop.last %}{{- ", " }}{%- endif %}
            {%- endfor %}
            {{- ")" }}
        {%- else %}
            {{- '<|head|>assistant<|/head|>\\n\\n' -}}
            {{- '{"name": "' + tool_call.name + '", ' }}
            {{- '"parameters": ' }}{{- tool_call.arguments | tojson }}{{- "}" }}
        {%- endif %}
        {{- "<|eot|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|head|>ipython<|/head|>\\n\\n" }}
        {%- if message.content is mapping or (message.content is iterable and message.content is not string) %}{{- message.content | tojson }}{%- else %}{{- message.content }}{%- endif %}
        {{- "<|eot|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|head|>assistant<|/head|>\\n\\n' }}{%- endif %}
"""
QWEN = """{%- if tools %}
    {{- '<|s|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}{{- "\\n" }}{{- tool | tojson }}{%- endfor %}
    {{- "\\n</tools>{\\"name\\": <n>}<|e|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}{{- '<|s|>system\\n' + messages[0].content + '<|e|>\\n' }}{%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<r>') and message.content.endswith('</r>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}{%- set content = message.content %}{%- else %}{%- set content = '' %}{%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|s|>' + message.role + '\\n' + content + '<|e|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|s|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}{{- '<|s|>' + message.role + '\\n' + content }}{%- endif %}
        {%- else %}{{- '<|s|>' + message.role + '\\n' + content }}{%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}{{- '\\n' }}{%- endif %}
                {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
                {{- '<call>\\n{"name": "' }}{{- tool_call.name }}{{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
                {{- '}\\n</call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|e|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|s|>user' }}{%- endif %}
        {{- '\\n<r>\\n' }}{{- content }}{{- '\\n</r>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|e|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|s|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""
MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}{{- '"' + key + '": "' + val + '"' }}{%- else %}{{- '"' + key + '": ' + val|tojson }}{%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}{{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}{%- else %}{{- "[INST] " + message["content"] + "[/INST]" }}{%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}{{- raise_exception("bad id") }}{%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}{{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}{%- set content = message.content.content %}{%- else %}{%- set content = message.content %}{%- endif %}
        {{- '[R] {"content": ' + content|string + ", " }}
        {{- '"id": "' + message.tool_call_id + '"}[/R]' }}
    {%- else %}{{- raise_exception("role") }}
    {%- endif %}
{%- endfor %}
"""
GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("roles must alternate") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}{%- set role = "model" -%}{%- else -%}{%- set role = message['role'] -%}{%- endif -%}
    {{ '<turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}{{ '<image>' }}{%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("content") }}
    {%- endif -%}
    {{ '<end>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<turn>model
'}}
{%- endif -%}
"""
PHI = """{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}{% else %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}"""
DEEPSEEK = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true) %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<U>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{{'<A><calls>' + tool['type'] + '<sep>' + tool['function']['name'] + '\\n' + '```json' + '\\n' + tool['function']['arguments'] | tojson + '\\n' + '```'}}{%- set ns.is_first = true -%}{%- endif %}{%- endfor %}{{'</calls>'}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' not in message %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<A>' + content + '<end>'}}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<outs><out>' + message['content'] + '</out>'}}{%- set ns.is_output_first = false %}{%- else %}{{'<out>' + message['content'] + '</out>'}}{%- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{'</outs>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<A><think>\\n'}}{% endif %}"""
MACROS = """{%- macro type_of(spec, required=false, depth=0) -%}
    {%- if spec.type is string -%}
        {%- if spec.type == "array" -%}{{- type_of(spec['items'] if 'items' in spec else {'type': 'any'}, depth=depth + 1) + "[]" -}}
        {%- elif spec.enum -%}{{- '"' + spec.enum|join('" | "') + '"' -}}
        {%- elif spec.type in ["integer", "number"] -%}{{- "number" -}}
        {%- else -%}{{- spec.type -}}{%- endif -%}
    {%- elif spec.type is iterable -%}
        {%- for t in spec.type -%}{{- t -}}{{- " | " if not loop.last -}}{%- endfor -%}
    {%- else -%}any{%- endif -%}
    {%- if spec.default is defined %} (default: {{ spec.default|tojson }}){% endif -%}
{%- endmacro -%}
{%- macro render_tools(tools) -%}
    {%- for tool in tools %}
        {%- set tool = tool.function %}
        {{- "// " + (tool.description or 'none') + "\\n" }}
        {{- "type "+ tool.name + " = (" }}
        {%- if tool.parameters and tool.parameters.properties %}
            {{- "_: {\\n" }}
            {%- for name, spec in tool.parameters.properties.items() %}
                {%- if spec.description %}{{- "// " + spec.description + "\\n" }}{%- endif %}
                {{- name }}{%- if name not in tool.parameters.required | default([]) %}{{- "?" }}{%- endif %}
                {{- ": " }}{{- type_of(spec, name in (tool.parameters.required or [])) }}{{- "," if not loop.last }}{{- "\\n" }}
            {%- endfor %}
            {{- "}) => any;\\n\\n" }}
        {%- else %}{{- ") => any;\\n\\n" }}{%- endif %}
    {%- endfor %}
{%- endmacro -%}
{%- set default_text -%}
You are
  a model.
{%- endset -%}
{%- set system = messages|selectattr('role', 'equalto', 'system')|map(attribute='content')|join('\\n')|trim or default_text -%}
<|sys|>{{ system }}
{% if tools %}{{ render_tools(tools) }}{% endif -%}
{%- for m in messages if m.role != 'system' %}
{%- if m.role == 'assistant' and m.tool_calls is defined %}{%- set lookup = m.tool_calls|first %}
<|call|>{{ lookup.function.name }}{{ lookup.function.arguments|tojson(indent=2) }}
{%- elif m.role in ('tool', 'function') %}
<|out|>{{ m.name|default('unknown') }}: {{ m.content|replace('"', "'") }}
{%- else %}
<|{{ m.role|capitalize }}|>{{ m.content.split('</think>')|last|trim }}{{ ' (first)' if loop.first }}
{%- endif %}
{%- endfor %}
{% if add_generation_prompt %}<|Assistant|>{% endif %}"""
COMMAND = """{{ bos_token }}{% if documents %}{% set prefix = '## Docs' %}{% endif %}
{%- if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% elif false == true %}{% set loop_messages = messages %}{% set system_message = 'You are C.' %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}
{%- if system_message != false %}{{ '<|start|><|sys|>' + system_message + '<|end|>' }}{% endif %}
{%- for message in loop_messages %}{% set content = message['content'] %}{% if message['role'] == 'user' %}{{ '<|start|><|user|>' + content.strip() + '<|end|>' }}{% elif message['role'] == 'assistant' %}{{ '<|start|><|bot|>'  + content.strip() + '<|end|>' }}{% elif message.role | lower == 'tool' %}{{ loop.index ~ ':' ~ content }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|start|><|bot|>' }}{% endif %}"""
TAGGED = """{% for m in messages %}{% if m.role == 'assistant' %}<a>
{% generation %}{{ m.content }}<e>{% endgeneration %}

{% else %}<{{ m.role }}>{{ m.content }}<e>
{% endif %}{% endfor %}{% if add_generation_prompt %}<a>
{% endif %}"""
FAMILIES = {"llama": LLAMA, "qwen": QWEN, "mistral": MISTRAL, "gemma": GEMMA, "phi": PHI, "deepseek": DEEPSEEK, "macros": MACROS, "command": COMMAND, "tagged": TAGGED}
CHATS = {"tools": CHAT, "plain": PLAIN, "parts": PARTS, "system": [{"role": "system", "content": "S"}] + PLAIN, "user": PLAIN[:1]}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def requests():
    """Each: a template and its variables."""
    for snippet in SNIPPETS:
        yield {"template": snippet, "variables": DATA}
    for family, template in FAMILIES.items():
        for chat in CHATS.values():
            for more in ({}, {"tools": TOOLS}, {"add_generation_prompt": True, "enable_thinking": False, "builtin_tools": ["get_weather", "code"]}):
                yield {"template": template, "variables": {"messages": chat, "tools": None, "documents": None, "add_generation_prompt": False, **TOKENS, **more}}


def render(request):
    """What transformers renders: the text and the generation spans in bytes, or the error."""
    from transformers.utils.chat_template_utils import _compile_jinja_template
    try:
        template = _compile_jinja_template(request["template"])
        blocks, indices = [], []
        with template.environment.activate_tracker(blocks, indices):
            for block in template.generate(**request["variables"]):
                blocks.append(block)
        text = "".join(blocks)
        text.encode("utf-8")
    except Exception as error:  # of any kind: Python's own, too
        return {"error": f"{type(error).__name__}: {error}"}
    in_bytes = lambda place: len(text[:place].encode("utf-8"))
    return {"text": text, "spans": [[in_bytes(begin), in_bytes(end)] for begin, end in indices]}


if __name__ == "__main__":
    shared = {json.dumps(DATA): 0}  # variables, each once
    cases = []
    for request in requests():
        place = shared.setdefault(json.dumps(request["variables"]), len(shared))
        cases.append({"template": request["template"], "variables": place, **render(request)})
    print(json.dumps({"variables": [json.loads(text) for text in shared], "cases": cases}, ensure_ascii=False, indent=0))
