#include "lib/config/comm_config.h"

namespace gxp {

std::vector<std::string_view> transport_names() {
  return {
      "auto",
#define GXP_TRANSPORT(name, ...) #name,
#include "lib/config/transports.inc"
#undef GXP_TRANSPORT
  };
}

std::vector<std::string_view> engine_names() {
  return {
      "auto",
#define GXP_ENGINE(name, ...) #name,
#include "lib/config/engines.inc"
#undef GXP_ENGINE
  };
}

std::vector<std::string_view> codec_names() {
  return {
      "none",
#define GXP_CODEC(name, ...) #name,
#include "lib/config/codecs.inc"
#undef GXP_CODEC
  };
}

}  // namespace gxp
