#include "server/plugin/token.h"

#include <cstdio>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

namespace rigstep::plugin {

std::string instantiation_token(const std::string& mechanism_text, const std::string& rig_text) {
  const std::string all = std::string(RIGSTEP_VERSION) + '\0' + rig_text + '\0' + mechanism_text;
  const XXH128_hash_t hash = XXH3_128bits(all.data(), all.size());
  char token[40];
  std::snprintf(token, sizeof token, "{%08x-%04x-%04x-%04x-%012llx}", static_cast<unsigned>(hash.high64 >> 32),
                static_cast<unsigned>(hash.high64 >> 16 & 0xffff), static_cast<unsigned>(hash.high64 & 0xffff),
                static_cast<unsigned>(hash.low64 >> 48),
                static_cast<unsigned long long>(hash.low64 & 0xffff'ffff'ffffULL));
  return token;
}

}  // namespace rigstep::plugin
