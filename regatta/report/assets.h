// report/assets.h: the style and the script of report.html, embedded when the program is built.
#pragma once

#include <string_view>

namespace regatta::report {

std::string_view report_css();
std::string_view report_js();

}  // namespace regatta::report
