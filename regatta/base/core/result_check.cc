#include <cstdio>
#include <cstdlib>

#include "regatta/base/core/result.h"

namespace regatta {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "regatta: bug: %s does not hold at %s:%d; please report it\n", condition,
               file, line);
  std::abort();
}

}  // namespace regatta
