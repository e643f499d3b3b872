// report/internal/assets.h: the style and the script of all pages and the style of a fabric's
// picture, embedded when the program is built.
#pragma once

#include <string_view>

namespace regatta::report {

std::string_view page_css();
std::string_view page_js();
std::string_view fabric_css();

}  // namespace regatta::report
