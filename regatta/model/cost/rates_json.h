// cost/rates_json.h: cost::Rates as JSON text: the file CLUSTER.measured.json.
// Versioned; keys carry their unit: bandwidth_Bps, latency_s, rate_flops.
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/cost/rates.h"

namespace regatta::cost {

// Indented text that parse_rates() gives back bit for bit. What is not known (`described` of a
// device, 0) is left out.
std::string rates_to_json(const Rates& rates);

// Fails with kInvalidInput when `text` is not such a document: the message starts with `name` (the
// file, for people), names the device or list, says which key or value is wrong, and to run
// `regatta measure` again. Every rate and time must be more than 0; only described_flops may be
// missing. Keys that it does not know are ignored; whether the rates suffice for a cluster is asked
// where they are used.
Result<Rates> parse_rates(std::string_view text, const std::string& name);

}  // namespace regatta::cost
