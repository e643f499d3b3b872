// core/units_text.h: the one place that turns text into units and back.
// Units are written with the number: 80GiB, 400Gbps, 50GB/s, 5us, 312TFLOPS, 20%. Parsing fails
// with kInvalidInput and a message that says what a right value looks like.
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta {

Result<Bytes> parse_bytes(std::string_view text);      // B, KB..TB (1000), KiB..TiB (1024)
Result<Seconds> parse_seconds(std::string_view text);  // ns, us, ms, s, min, h, d
Result<BytesPerSecond> parse_bytes_per_second(
    std::string_view text);  // bps..Tbps (bits), B/s..TB/s, KiB/s..TiB/s
Result<FlopsPerSecond> parse_flops_per_second(std::string_view text);  // MFLOPS..EFLOPS
Result<double> parse_ratio(std::string_view text);                     // "20%" or "0.2"

std::string format_bytes(Bytes size);                      // "1.50 GiB", "812 B"
std::string format_bytes(double size);                     // of a model: whole bytes are shown
std::string format_seconds(Seconds time);                  // "1.23 s", "45.6 ms", "7.8 us"
std::string format_duration(Seconds time);                 // "3.20 h", "41.5 d": of long work
std::string format_bits_per_second(BytesPerSecond rate);   // "100 Mbps": network links
std::string format_bytes_per_second(BytesPerSecond rate);  // "12.3 GB/s": memory and device links
std::string format_flops_per_second(FlopsPerSecond rate);  // "312 TFLOPS"
std::string format_percent(double ratio);                  // 0.123 -> "12.3 %"

}  // namespace regatta
