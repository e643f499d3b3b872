// sharing/internal/daemon/metrics.h: the books as JSON for `regatta gpu ps`, and as text for
// Prometheus.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "regatta/gpu/sharing/internal/daemon/books.h"
#include "regatta/gpu/sharing/internal/daemon/engines.h"
#include "regatta/gpu/sharing/internal/daemon/membership.h"
#include "regatta/gpu/sharing/internal/daemon/timekeeper.h"

namespace regatta::sharing {

struct Shown {
  const Books& books;
  const Membership& membership;
  const Timekeeper& times;
  const Engines& engines;
};

nlohmann::json tenant_json(const Shown& shown, int tenant);
nlohmann::json books_json(const Shown& shown);

// Source: Prometheus, "Exposition formats", text format 0.0.4.
std::string metrics_text(const Shown& shown);

}  // namespace regatta::sharing
