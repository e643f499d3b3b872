// vgpu/daemon/metrics.h: the books as JSON for `regatta gpu ps`, and as text for Prometheus.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "regatta/vgpu/daemon/books.h"

namespace regatta::vgpu {

nlohmann::json tenant_json(const Books& books, int tenant);
nlohmann::json books_json(const Books& books);

// Source: Prometheus, "Exposition formats", text format 0.0.4.
std::string metrics_text(const Books& books);

}  // namespace regatta::vgpu
