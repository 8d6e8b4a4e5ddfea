#include "lib/report/svg.h"

#include <string>

#include "tests/catch.h"

namespace gxp {

TEST_CASE("a picture has tenths of pixels, escaped words, and no empty attribute", "[report]") {
  Svg svg(10, 20.04, {{"font-size", 12}}, "a & b");
  svg.add("rect", {{"class", ""}, {"x", 1.25}}, "<tip>");
  svg.add_text({{"x", 3}}, "\"\x01\"");
  CHECK(std::move(svg).finish() ==
        std::string("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 10 20\" width=\"10\" "
                    "height=\"20\" font-size=\"12\">\n<title>a &amp; b</title>\n"
                    "<rect width=\"10\" height=\"20\" style=\"fill:#fff\"/>\n"
                    "<rect x=\"1.2\"><title>&lt;tip&gt;</title></rect>\n"
                    "<text x=\"3\">&quot;?&quot;</text>\n</svg>\n"));
}

}  // namespace gxp
