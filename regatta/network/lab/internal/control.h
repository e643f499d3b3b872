// lab/internal/control.h: requests to the holder of a lab: a line of JSON in each direction, one
// request a connection, over the socket FOLDER/control.sock, whose folder only its user can enter.
//
//   {"op": "links", "first": n}                     -> {"links": [...], "count": n}
//   {"op": "down" | "slow" | "drop" | "clear", "link": NAME, "rate_Bps": x, "share": y} -> {}
//   {"op": "swap", "link": NAME, "other": NAME}     -> {}
//   {"op": "converge", "on": b}                     -> {}
//   {"op": "heard"}                                 -> {"heard": [n...]}, of Network::heard_ports()
//   an error                                        -> {"error": TEXT, "code": n}
//
// `links` lists at most kLinksMax from number `first` on; `count` is the number of all.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/json.h"
#include "regatta/base/core/result.h"
#include "regatta/base/net/line_server.h"
#include "regatta/network/lab/lab.h"

namespace regatta::lab {

// An answer fits the buffer of a socket, because the server never waits for a client.
inline constexpr std::size_t kLinksMax = 500;

// Client side. kUnavailable when the holder is gone or answers nothing of use, kTimeout when it
// does not answer within 10 s.
Result<JsonReader> request(const LabInfo& lab, const nlohmann::json& message);

// Holder side.
Result<net::LineServer> listen_for_requests(const std::string& folder);
using RequestHandler = std::function<Result<nlohmann::json>(const JsonReader&)>;
// Waits at most `limit` for requests and answers them. A client without a request is closed after
// 2 s, so that silent clients keep others out no longer than that.
void serve_requests(net::LineServer& server, Seconds limit, const RequestHandler& handler);

nlohmann::json links_to_json(const std::vector<LinkState>& states, std::size_t first);

// An error as the holder sends it; empty for another answer.
nlohmann::json to_json(const Error& error);
std::optional<Error> read_error(const JsonReader& answer);

}  // namespace regatta::lab
