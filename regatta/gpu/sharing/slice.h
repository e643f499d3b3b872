// sharing/slice.h: the share of the GPUs that a tenant may have, in the syntax of command lines and
// of container annotations.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::sharing {

// "30" or "30%" as millionths. kInvalidInput unless it is above 0 and at most 100.
Result<unsigned> parse_compute(const std::string& text);
// kInvalidInput: less than one block (REGATTA_BLOCK_BYTES, 2 MiB), with which a program can do
// nothing.
Status check_minimum_memory(Bytes memory);
// "4GiB" of GPU `gpu` (0 by default), or of several: "0=4GiB,1=8GiB". Each at least
// check_minimum_memory(), or 0.
Result<std::map<int, Bytes>> parse_memory(const std::string& text, std::optional<int> gpu = {});

// An unset limit was not stated.
struct GpuSlice {
  std::map<int, Bytes> memory;  // of each GPU; empty: unset
  std::optional<unsigned> compute_ppm;
  std::optional<unsigned> weight;
  std::optional<bool> is_high_priority;
};

// Sets the limit named `key`: memory, compute, weight or priority. kInvalidInput.
Status set_limit(GpuSlice& slice, const std::string& key, const std::string& text);

// `asked`, completed by the limits of `most`. kInvalidInput names a limit above `most`. Where
// `most` states any limit, an unset weight is 1 in it, and an unset priority is normal.
Result<GpuSlice> restrict_slice(const GpuSlice& asked, const GpuSlice& most);

// Adds the limits to a request to the daemon: docs/formats/gpu_daemon.md.
void add_to_request(nlohmann::json& request, const GpuSlice& slice);

}  // namespace regatta::sharing
