// What is not supported is refused by name; hostile templates end.
#include <map>

#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/text/chat/chat_samples.h"

namespace gxp {
namespace {

Caught failure_of(const std::string& source) {
  return error_of([&] {
    JinjaDict variables;
    variables.set("s", "ä");
    variables.set("d", JinjaDict());
    static_cast<void>(JinjaTemplate(source, "the template").render(variables, 0));
  });
}

std::string repeated(const std::string& part, size_t count) {
  std::string text;
  for (size_t time = 0; time < count; ++time) text += part;
  return text;
}

}  // namespace

TEST_CASE("what of Jinja is not supported is refused by its name and line", "[text]") {
  const std::map<std::string, std::string> kRefused = {
      {"{% include 'a' %}", "{% include %} is not supported"},
      {"{% extends 'a' %}", "{% extends %} is not supported"},
      {"{% call f() %}{% endcall %}", "{% call %} is not supported"},
      {"{% filter upper %}{% endfilter %}", "{% filter %} is not supported"},
      {"{% do f() %}", "{% do %} is not supported"},
      {"{% for i in d recursive %}{% endfor %}", "recursive loop is not supported"},
      {"{% for i in [1] %}{% macro f() %}{% endmacro %}{% endfor %}", "macro in a loop"},
      {"{% macro f() %}{% generation %}{% endgeneration %}{% endmacro %}",
       "{% generation %} in a macro"},
      {"{% macro f() %}{{ varargs }}{% endmacro %}", "'varargs' in a macro is not supported"},
      {"{{ f(*d) }}", "'*' before an argument is not supported"},
      {"{{ s|wordwrap }}", "filter 'wordwrap' is not supported"},
      {"{{ s is upper }}", "test 'upper' is not supported"},
      {"{{ s.zfill(3) }}", "'zfill' of a text is not supported"},
      {"{{ '%c' % s }}", "'%c' in a format is not supported"},
      {"{{ '{:>3}'.format(s) }}", "the field '{:>3}' in a format is not supported"},
      {"{{ (-2) ** 3 }}", "'**' of a negative number is not supported"},
      {"{{ 25|round(-1) }}", "round to -1 places is not supported"},
      {"{{ [0.5]|sum }}", "sum of numbers with a fraction is not supported"},
      {"{{ ('a'|safe)|trim }}", "'trim' of HTML is not supported"},
      {"{{ 'a'|replace('a'|e, 'b') }}", "'replace' of HTML is not supported"},
      {"{{ ('a'|safe).strip() }}", "the attribute 'strip' of HTML is not supported"},
      {"{{ ('a'|safe)[0] }}", "an item of HTML is not supported"},
      {"{{ ('a'|safe)[:1] }}", "a slice of HTML is not supported"},
      {"{{ ('a'|safe) * 2 }}", "'*' of HTML is not supported"},
      {"{{ ['a'|safe] }}", "printing a list or dict of HTML is not supported"},
      {"{{ s.isdigit() }}", "not ASCII is not supported"},
      {"{{ s|upper }}", "not ASCII"},
      {"{{ [s] }}", "not ASCII"},
      {"{{ d.items }}", "printing a function is not supported"},
      {"{{ range(3) }}", "printing a range is not supported"},
      {"{{ {1: 2} }}", "a integer as the key of a dict is not supported"},
      {"{{ 0x1f }}", "numbers written like 0x... are not supported"},
      {"{{ strftime_now('%c') }}", "strftime_now('%c') is not supported"},
      {"{{ cycler(1) }}", "'cycler' is not supported"},
      {"{% for i in [1] %}{{ loop.changed(i) }}{% endfor %}", "'loop.changed' is not supported"},
      {"{{ d.__class__ }}", "'__class__' is not supported"},
  };
  for (const auto& [source, words] : kRefused) {
    const Caught caught = failure_of("\n\n" + source);
    CAPTURE(source, caught.message);
    CHECK(caught.kind == ErrorKind::kCorrupt);
    CHECK(caught.says(words));
    CHECK(caught.says("the template: line 3: "));
  }
}

TEST_CASE("a hostile template ends in an error", "[text]") {
  const std::string doubling =
      "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x "
      "%}{% endfor %}";
  const std::string kHostile[] = {
      "{{" + repeated("(", 5000) + "1" + repeated(")", 5000) + "}}",
      "{{ 1" + repeated("+1", 50'000) + " }}",
      "{{ s" + repeated("|trim", 50'000) + " }}",
      "{{ s" + repeated(".a", 50'000) + " }}",
      "{{ " + repeated("not ", 50'000) + "1 }}",
      "{{ " + repeated("-", 50'000) + "1 }}",
      repeated("{% if 1 %}", 50'000),
      repeated("{% for i in [1] %}", 500) + repeated("{% endfor %}", 500),
      "{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{{ 'a' * 9223372036854775807 }}",
      "{{ [1] * 99999999999 }}",
      "{{ 'a' * 100000000 * 100 }}",
      doubling,
      "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% "
      "endfor %}",
      "{% for i in range(99999) %}{{ 'aaaaaaaaaa'.replace('a', 'a' * 9999) }}{% endfor %}",
      "{{ ('a\n' * 9999999)|indent(1000) }}",
      "{{ ('<' * 39999999)|e }}",
      std::string(2 << 20, 'a'),
      "\xff",
  };
  for (const std::string& source : kHostile) {
    const Caught caught = failure_of(source);
    CAPTURE(source.substr(0, 100), caught.message);
    CHECK(caught.kind == ErrorKind::kCorrupt);
  }
}

TEST_CASE("many small things are no hostile template", "[text]") {
  CHECK_FALSE(failure_of(repeated("{% if s %}{{ s }}{% endif %}\n", 20'000)).kind);
  CHECK_FALSE(failure_of("{% if 0 %}" + repeated("{% elif 0 %}", 20'000) + "{% endif %}").kind);
  CHECK_FALSE(failure_of("{{ s" + repeated(" ~ s", 20'000) + " }}").kind);
  CHECK_FALSE(
      failure_of("{% macro f(k) %}{% if k %}{{ f(k - 1) }}{% endif %}{% endmacro %}{{ f(100) }}")
          .kind);
}

TEST_CASE("a chain of namespaces is let go without recursion", "[text]") {
  CHECK_FALSE(failure_of("{% set ns = namespace(x=none) %}{% for i in range(99999) %}"
                         "{% set ns.x = namespace(x=ns.x) %}{% endfor %}")
                  .kind);
}

}  // namespace gxp
