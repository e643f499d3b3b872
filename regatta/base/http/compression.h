// http/compression.h: bodies as gzip (RFC 1952), for clients that accept it (RFC 9110, 12.5.3).
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/http/http_message.h"

namespace regatta::http {

// Level 1 of zlib: a body of figures shrinks to a half or less at some 100 MB/s.
std::string gzip(std::string_view body);

// Whether the value of Accept-Encoding names gzip without a weight of 0.
bool accepts_gzip(std::string_view accept_encoding);

// Compresses the response and sets its headers, where the request accepts it and it is worth it.
void compress_for(const Request& request, Response& response);

}  // namespace regatta::http
