// vgpu/daemon/metrics.h: the books as JSON for `regatta gpu ps`, and as text for Prometheus.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "regatta/vgpu/daemon/books.h"
#include "regatta/vgpu/daemon/membership.h"
#include "regatta/vgpu/daemon/timekeeper.h"

namespace regatta::vgpu {

nlohmann::json tenant_json(const Books& books, const Timekeeper& times, int tenant);
nlohmann::json books_json(const Books& books, const Membership& membership,
                          const Timekeeper& times);

// Source: Prometheus, "Exposition formats", text format 0.0.4.
std::string metrics_text(const Books& books, const Timekeeper& times);

}  // namespace regatta::vgpu
