#include "regatta/base/os/log.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace regatta::os {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// spdlog reads an unknown word as "off": a typing error in REGATTA_LOG would hide every error.
spdlog::level::level_enum level_of(std::string_view word) {
  const auto level = spdlog::level::from_str(std::string(word));
  return level == spdlog::level::off && word != "off" ? spdlog::level::info : level;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("regatta",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%H:%M:%S.%e %l %v");
    const char* wanted = std::getenv("REGATTA_LOG");
    made->set_level(wanted == nullptr ? spdlog::level::info : level_of(wanted));
    return made;
  }();
  return *instance;
}

}  // namespace

void set_log_level(LogLevel level) {
  logger().set_level(to_spdlog(level));
}

void log(LogLevel level, std::string_view message) {
  logger().log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace regatta::os
