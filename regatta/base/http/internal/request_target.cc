#include "regatta/base/http/internal/request_target.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "regatta/base/core/text.h"

namespace regatta::http {
namespace {

// Nothing for a wrong escape or a control character.
std::optional<std::string> decoded(std::string_view text, bool is_plus_space) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char letter = text[i];
    if (letter == '%') {
      const auto value = parse_number<unsigned char>(text.substr(i + 1, 2), 16);
      if (!value || text.size() - i < 3) return std::nullopt;
      letter = static_cast<char>(*value);
      i += 2;
    } else if (letter == '+' && is_plus_space) {
      letter = ' ';
    }
    if (static_cast<unsigned char>(letter) < ' ' || letter == 127) return std::nullopt;
    result += letter;
  }
  return result;
}

bool has_dot_segment(std::string_view path) {
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view segment = path.substr(0, end);
    if (segment == "." || segment == "..") return true;
    path.remove_prefix(end);
  }
  return false;
}

// The part of an absolute form behind scheme and authority; other forms as they are.
std::string_view without_authority(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    target.remove_prefix(end);
    return target.empty() ? "/" : target;
  }
  return target;
}

Error wrong(std::string_view target) {
  return Error{Code::kInvalidInput, "the target '" + printable(target, 80) +
                                        "' of a request is not well formed; send /path?name=value"};
}

}  // namespace

Status decode_target(std::string_view target, Request& request) {
  std::string_view rest = without_authority(target);
  const std::size_t question = std::min(rest.find('?'), rest.size());
  const auto path = decoded(rest.substr(0, question), false);
  if (!path || !path->starts_with('/') || has_dot_segment(*path)) return wrong(target);
  request.target = rest;
  request.path = *path;
  request.query.clear();
  rest.remove_prefix(std::min(question + 1, rest.size()));
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = decoded(pair.substr(0, equals), true);
    auto value = decoded(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return wrong(target);
    request.query.emplace_back(std::move(*name), std::move(*value));
  }
  return {};
}

}  // namespace regatta::http
