// bench/http/http_load.h: the clients of the bench: requests over many kept TLS connections, and
// connections that do nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/base/tls/tls_stream.h"

namespace regatta::http_bench {

// One TLS connection to 127.0.0.1.
struct LoadConnection {
  os::UniqueFd fd;
  tls::TlsStream stream;
  std::size_t received = 0;  // bytes of the response that is due
  double sent_s = 0;
};

// With its handshake.
Result<LoadConnection> open_connection(const tls::TlsContext& context, std::uint16_t port);
// Sends `request` and reads its response, up to `end`; returns the size of the response.
Result<std::size_t> ask(LoadConnection& connection, const std::string& request,
                        const std::string& end);

struct LoadResult {
  long long requests = 0;
  Seconds time;
  Seconds latency_p50;
  Seconds latency_p99;
};

// Each connection sends `request` again when its response of `response_bytes` is there.
Result<LoadResult> run_load(std::vector<LoadConnection>& connections, const std::string& request,
                            std::size_t response_bytes, Seconds time);

}  // namespace regatta::http_bench
