#include "regatta/planning/replay/internal/log_lines.h"

#include <cmath>
#include <cstddef>

#include "regatta/base/core/text.h"

namespace regatta::replay {
namespace {

bool is_key_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_';
}

// "\033[31m" and such.
std::size_t after_color(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  if (end < text.size() && text[end] == '[') ++end;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == ';'))
    ++end;
  return end < text.size() && is_key_letter(text[end]) ? end + 1 : end;
}

// The word that ends before `end`, quotes aside.
std::string_view word_before(std::string_view line, std::size_t end) {
  while (end > 0 && (line[end - 1] == ' ' || line[end - 1] == '"'))
    --end;
  std::size_t begin = end;
  while (begin > 0 && is_key_letter(line[begin - 1]))
    --begin;
  return line.substr(begin, end - begin);
}

std::string_view unquoted(std::string_view text) {
  text = trim(text);
  while (!text.empty() && (text.back() == ',' || text.back() == '"' || text.back() == '\''))
    text.remove_suffix(1);
  while (!text.empty() && (text.front() == '"' || text.front() == '\''))
    text.remove_prefix(1);
  return text;
}

using Setting = std::optional<std::pair<std::string_view, std::string_view>>;

Setting made(std::string_view key, std::string_view value) {
  if (key.empty()) return std::nullopt;
  return std::pair{key, unquoted(value)};
}

}  // namespace

std::vector<std::string> log_lines(std::string_view text) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\033') {
      at = after_color(text, at);
      continue;
    }
    if (text[at] == '\n' || text[at] == '\r')
      lines.emplace_back();
    else
      lines.back() += text[at];
    ++at;
  }
  return lines;
}

std::optional<double> number_after(std::string_view line, std::string_view marker) {
  const std::size_t found = line.find(marker);
  if (found == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(found + marker.size());
  while (!rest.empty() && rest.front() == ' ')
    rest.remove_prefix(1);
  std::string digits;
  for (const char letter : rest) {
    const bool is_number = (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' ||
                           letter == '+' || letter == 'e' || letter == 'E';
    if (!is_number && letter != ',') break;
    if (is_number) digits += letter;
  }
  while (!digits.empty() && digits.back() == '.')
    digits.pop_back();
  const auto number = parse_number<double>(digits);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

Setting setting_in(std::string_view line) {
  if (const std::size_t dots = line.find(" .."); dots != std::string_view::npos) {
    const std::size_t end = line.find_first_not_of('.', dots + 1);
    if (end == std::string_view::npos) return std::nullopt;
    return made(word_before(line, dots), line.substr(end));
  }
  constexpr std::string_view kPrint = "print]";
  if (const std::size_t print = line.find(kPrint); print != std::string_view::npos) {
    const std::string_view rest = trim(line.substr(print + kPrint.size()));
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    return made(word_before(rest, space), rest.substr(space));
  }
  // A number is the label of a task ("0: "), no key.
  std::size_t colon = line.find(": ");
  while (colon != std::string_view::npos &&
         parse_number<long long>(word_before(line, colon)).has_value())
    colon = line.find(": ", colon + 1);
  if (colon == std::string_view::npos) return std::nullopt;
  return made(word_before(line, colon), line.substr(colon + 1));
}

}  // namespace regatta::replay
