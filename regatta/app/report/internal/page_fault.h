// report/internal/page_fault.h: what tests require of the structure of every page.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace regatta::report {

std::size_t count(std::string_view text, std::string_view part);

// The first fault of a page, "" for none: an element that does not close, a request that leaves the
// page, a drawing without a viewBox or a text for those who cannot see it, a shape outside its
// viewBox, a missing header or footer, a second <h1>.
std::string page_fault(std::string_view html);

}  // namespace regatta::report
