// http/web_socket_client.h: the client's end of a WebSocket over TLS, asynchronous, for agents.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_client.h"
#include "regatta/base/http/http_server.h"

namespace regatta::http {

// Connects in the background and calls `done` once, in the loop's thread, never within this call:
// with the open WebSocket; kUnavailable; kTimeout after `connect_limit` of the options, which
// bounds all until the WebSocket is open; kInvalidInput for options or a certificate that is not
// trusted; kUnsupported when the server refuses the upgrade, with its status in the text. A server
// that answers 307 is followed to the one that it names, within the same limit.
// Afterwards `response_limit` is the idle limit of WebSocket.
void connect_web_socket(EventLoop& loop, const ClientOptions& options, const std::string& target,
                        const Headers& headers,
                        std::function<void(Result<std::unique_ptr<WebSocket>>)> done);

}  // namespace regatta::http
