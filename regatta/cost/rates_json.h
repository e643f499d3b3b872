// cost/rates_json.h: cost::Rates as JSON text: the file CLUSTER.measured.json.
// Versioned; keys carry their unit: bandwidth_Bps, latency_s, rate_flops.
#pragma once

#include <string>
#include <string_view>

#include "regatta/core/result.h"
#include "regatta/cost/rates.h"

namespace regatta::cost {

// Indented text that parse_rates() gives back bit for bit.
std::string rates_to_json(const Rates& rates);

// Fails with kInvalidInput when `text` is not such a document: the message starts with `name` (the
// file, for people), names the key and says to run `regatta measure` again. Rates must be positive.
Result<Rates> parse_rates(std::string_view text, const std::string& name);

}  // namespace regatta::cost
