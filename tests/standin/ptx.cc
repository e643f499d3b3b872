// The parts of a PTX text that matter here: names, parameters and variables.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "tests/standin/module.h"

namespace regatta::standin {
namespace {

bool is_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '$';
}

std::string_view skip_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? std::string_view() : text.substr(first);
}

// The number that a text starts with, which is cut off; none: it starts with none.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// The next word, with the dot that it may start with, which is cut off.
std::string_view take_word(std::string_view& text) {
  text = skip_spaces(text);
  std::size_t length = text.starts_with('.') ? 1 : 0;
  while (length < text.size() && is_letter(text[length]))
    ++length;
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

// "spin_500us": the last part of the name that is a number with a unit of time.
std::optional<Time> stated_duration(std::string_view name) {
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  constexpr Time kForever = std::chrono::hours(24 * 365 * 100);
  std::optional<Time> found;
  for (std::size_t at = name.find('_'); at != name.npos; at = name.find('_', at + 1)) {
    std::string_view part = name.substr(at + 1);
    const auto number = take_number(part);
    part = part.substr(0, part.find('_'));
    for (const auto& [unit, nanoseconds] : kUnits)
      if (number && part == unit) found = Time(*number * nanoseconds);
    if (!number && part == "forever") found = kForever;
  }
  return found;
}

// "spin_1ms_fails_719": the error that its end is.
CUresult stated_failure(std::string_view name) {
  constexpr std::string_view kFails = "_fails_";
  const std::size_t at = name.find(kFails);
  if (at == name.npos) return CUDA_SUCCESS;
  name.remove_prefix(at + kFails.size());
  return static_cast<CUresult>(take_number(name).value_or(CUDA_ERROR_UNKNOWN));
}

// `.align 8 .b8 NAME[16]` or `.u64 NAME`: what is declared; none: it is nothing of that kind.
struct Declared {
  std::string_view name;
  std::uint64_t align = 1;
  std::uint64_t bytes = 0;
};
std::optional<Declared> take_declaration(std::string_view& text) {
  Declared declared;
  std::string_view word = take_word(text);
  std::uint64_t align = 0;
  while (word.starts_with('.')) {
    std::string_view digits = word.substr(std::min<std::size_t>(2, word.size()));
    if (word == ".align") {
      text = skip_spaces(text);
      align = static_cast<std::uint64_t>(take_number(text).value_or(1));
    } else if (const auto bits = take_number(digits); bits && digits.empty()) {
      declared.bytes = static_cast<std::uint64_t>(*bits) / 8;
    }
    word = take_word(text);
  }
  if (word.empty() || declared.bytes == 0) return std::nullopt;
  declared.name = word;
  declared.align = align == 0 ? declared.bytes : align;
  text = skip_spaces(text);
  while (text.starts_with('[')) {
    text = skip_spaces(text.substr(1));
    declared.bytes *= static_cast<std::uint64_t>(take_number(text).value_or(1));
    text = skip_spaces(text.substr(std::min(text.size(), text.find(']') + 1)));
  }
  return declared;
}

// `(.param .u64 NAME, .param .align 8 .b8 NAME[16])`
std::vector<Parameter> parameters_of(std::string_view text) {
  std::vector<Parameter> parameters;
  std::size_t end = 0;
  if (!text.starts_with('(')) return {};
  do {
    text = text.substr(1);
    if (take_word(text) != ".param") break;
    const auto declared = take_declaration(text);
    if (!declared) break;
    const std::size_t offset = (end + declared->align - 1) / declared->align * declared->align;
    parameters.push_back({offset, declared->bytes});
    end = offset + declared->bytes;
  } while (text.starts_with(','));
  return parameters;
}

}  // namespace

std::map<std::string, CUfunc_st> kernels_of(std::string_view text) {
  constexpr std::string_view kEntry = ".entry";
  std::map<std::string, CUfunc_st> kernels;
  for (std::size_t at = text.find(kEntry); at != text.npos; at = text.find(kEntry, at + 1)) {
    std::string_view rest = text.substr(at + kEntry.size());
    const std::string name(take_word(rest));
    if (name.empty()) continue;
    kernels[name] = {.name = name,
                     .duration = stated_duration(name),
                     .fails = stated_failure(name),
                     .parameters = parameters_of(skip_spaces(rest))};
  }
  return kernels;
}

std::map<std::string, Global> globals_of(std::string_view text) {
  constexpr std::string_view kGlobal = ".global";
  std::map<std::string, Global> globals;
  for (std::size_t at = text.find(kGlobal); at != text.npos; at = text.find(kGlobal, at + 1)) {
    std::string_view rest = text.substr(at + kGlobal.size());
    // Instructions such as ld.global.u32 have no space before it.
    if (at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])) == 0) continue;
    if (const auto declared = take_declaration(rest))
      globals[std::string(declared->name)] = {.bytes = declared->bytes};
  }
  return globals;
}

int target_of(std::string_view text) {
  constexpr std::string_view kTarget = ".target sm_";
  const std::size_t at = text.find(kTarget);
  if (at == text.npos) return 0;
  text.remove_prefix(at + kTarget.size());
  return static_cast<int>(take_number(text).value_or(0));
}

bool is_ptx(std::string_view text) {
  return text.find(".version") <
         std::min({text.find(".target"), text.find(".entry"), text.find(".global")});
}

bool begins_as_ptx(std::string_view text) {
  const std::size_t version = text.find(".version");
  const std::size_t target = text.find(".target");
  const std::size_t first = std::min(text.find(".entry"), text.find(".global"));
  return version < target && target != text.npos && target < first;
}

}  // namespace regatta::standin
