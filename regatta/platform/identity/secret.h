// identity/secret.h: random secrets and their hashes; passwords by argon2id (RFC 9106).
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/core/result.h"

namespace regatta::identity {

// 256 random bits as 43 letters of base64url, behind `prefix`.
std::string random_secret(std::string_view prefix);
// 16 random hex digits.
std::string random_id();
// SHA-256 in hex.
std::string secret_hash(std::string_view secret);

// 19 MiB, two passes: takes tens of milliseconds, so it runs beside the controller's loop.
// kExhausted when memory is short.
Result<std::string> hash_password(const std::string& password);
bool verify_password(const std::string& hash, const std::string& password);

}  // namespace regatta::identity
