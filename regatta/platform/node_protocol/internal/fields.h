// node_protocol/internal/fields.h: checks of fields, and the parts that both directions share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "regatta/base/core/result.h"
#include "regatta/platform/control/node.h"
#include "regatta/platform/node_protocol/node_message.h"
#include "regatta/platform/node_protocol/node_protocol.pb.h"

namespace regatta::node_protocol {

inline Error field_error(std::string_view field, std::string_view problem) {
  return {Code::kInvalidInput,
          fmt::format("message, field {}: {}; the other side is damaged or no part of Regatta",
                      field, problem)};
}

inline Status check_range(std::string_view field, std::int64_t value, std::int64_t low,
                          std::int64_t high) {
  if (value >= low && value <= high) return {};
  return field_error(field, fmt::format("{} is not within {} and {}", value, low, high));
}

inline Status check_length(std::string_view field, std::string_view text, std::size_t most) {
  if (text.size() > most)
    return field_error(field, fmt::format("{} bytes are more than {}", text.size(), most));
  if (text.find('\0') != std::string_view::npos) return field_error(field, "it has a byte 0");
  return {};
}

inline void write_key(const control::ReplicaKey& key, proto::Key& to) {
  to.set_job(key.job);
  to.set_attempt(key.attempt);
  to.set_replica(key.replica);
}

inline Result<control::ReplicaKey> read_key(const proto::Key& from) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  REGATTA_TRY_DO(check_range("key.job", from.job(), 1, std::int64_t{1} << 60));
  REGATTA_TRY_DO(check_range("key.attempt", from.attempt(), 1, kMost));
  REGATTA_TRY_DO(check_range("key.replica", from.replica(), 0, kMost));
  return control::ReplicaKey{
      .job = from.job(), .attempt = from.attempt(), .replica = from.replica()};
}

inline Result<std::vector<std::string>> read_capabilities(
    const google::protobuf::RepeatedPtrField<std::string>& from) {
  REGATTA_TRY_DO(check_range("capabilities", from.size(), 0, 64));
  for (const std::string& name : from)
    REGATTA_TRY_DO(check_length("capabilities", name, kNameBytesMax));
  return std::vector<std::string>(from.begin(), from.end());
}

}  // namespace regatta::node_protocol
