// report/assets.h: the style and the script of report.html and of the pictures of a fabric and of
// a GPU plan, embedded when the program is built.
#pragma once

#include <string_view>

namespace regatta::report {

std::string_view report_css();
std::string_view report_js();
std::string_view fabric_css();
std::string_view gpu_plan_css();  // besides report_css()

}  // namespace regatta::report
