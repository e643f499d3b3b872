// sharing/slice.h: the part of the GPUs that a tenant may have, as people write it: on command
// lines and in the annotations of containers.
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
// "4GiB" of GPU `gpu`, 0 when none is said, or of several: "0=4GiB,1=8GiB". Of each nothing, or
// enough.
Result<std::map<int, Bytes>> parse_memory(const std::string& text, std::optional<int> gpu = {});

// What is not set was not said.
struct GpuSlice {
  std::map<int, Bytes> memory;  // of each GPU; empty: not said
  std::optional<unsigned> compute_ppm;
  std::optional<unsigned> weight;
  std::optional<bool> is_high_priority;
};

// Sets the limit that is called `key`: memory, compute, weight or priority. kInvalidInput.
Status set_limit(GpuSlice& slice, const std::string& key, const std::string& text);

// `asked`, and of `most` what it leaves out. kInvalidInput names what is asked above `most`.
Result<GpuSlice> restrict_slice(const GpuSlice& asked, const GpuSlice& most);

// As the daemon is asked: docs/formats/gpu_daemon.md.
void add_to_request(nlohmann::json& request, const GpuSlice& slice);

}  // namespace regatta::sharing
