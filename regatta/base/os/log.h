// os/log.h: log lines to standard error: "time level message". Thread safe.
#pragma once

#include <string_view>

namespace regatta::os {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Drops lines below `level`. It starts as REGATTA_LOG=debug|info|warning|error|off, and as kInfo
// without the variable or with another word.
void set_log_level(LogLevel level);
void log(LogLevel level, std::string_view message);

inline void log_info(std::string_view message) {
  log(LogLevel::kInfo, message);
}
inline void log_warning(std::string_view message) {
  log(LogLevel::kWarning, message);
}
inline void log_error(std::string_view message) {
  log(LogLevel::kError, message);
}

}  // namespace regatta::os
