// cli/internal/print_now.h: output that a reader of a pipe sees at once.
#pragma once

#include <cstdio>
#include <string>

namespace regatta::cli {

inline void print_now(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace regatta::cli
