#include "lib/base/text/xml_escape.h"

#include "tests/catch.h"

namespace gxp {

TEST_CASE("what XML would read as its own is escaped", "[base]") {
  CHECK(escaped_for_xml("a<b>&\"c\"") == "a&lt;b&gt;&amp;&quot;c&quot;");
}

TEST_CASE("what XML forbids becomes a question mark", "[base]") {
  CHECK(safe_for_xml("<\x01\xff\t\u00e9\n\xef\xbf\xbf>") == "&lt;???\u00e9\n?&gt;");
}

}  // namespace gxp
