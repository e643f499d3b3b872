// report/assets.h: the style and the script of report.html and of the picture of a fabric, embedded
// when the program is built.
#pragma once

#include <string_view>

namespace regatta::report {

std::string_view report_css();
std::string_view report_js();
std::string_view fabric_css();

}  // namespace regatta::report
