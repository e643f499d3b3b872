#include <string>

#include "regatta/app/report/html_text.h"
#include "regatta/app/report/internal/html_sections.h"
#include "regatta/app/report/pages.h"

namespace regatta::report {

std::string report_html(const RunResult& result) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>";
  html += escape_html(result.job.name + " on " + result.cluster.name);
  html += " - regatta</title>\n<style>\n";
  html += report_css();
  html += "</style>\n</head>\n<body>\n<main>\n";
  html += header_section(result);
  html += figures_section(result);
  html += phases_section(result);
  html += timeline_section(result);
  html += plan_section(result);
  html += steps_section(result);
  html += sweep_section(result);
  html += cluster_section(result);
  html += traffic_section(result);
  html += footer_section(result);
  html += "</main>\n<script>\n";
  html += report_js();
  html += "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace regatta::report
