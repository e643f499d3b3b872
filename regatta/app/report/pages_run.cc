#include <string>

#include "regatta/app/report/internal/html_sections.h"
#include "regatta/app/report/internal/html_text.h"
#include "regatta/app/report/pages.h"

namespace regatta::report {

std::string report_html(const RunResult& result) {
  std::string body = tiles_section(result);
  body += phases_section(result);
  body += timeline_section(result);
  body += plan_section(result);
  body += steps_section(result);
  body += sweep_section(result);
  body += cluster_section(result);
  body += traffic_section(result);
  return html_page(frame_of(result), body);
}

}  // namespace regatta::report
