// cli/internal/platform_access.h: `regatta login`, `users`, `tokens` and `token`: who may use the
// platform, and join it.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "regatta/app/cli/internal/platform_client.h"
#include "regatta/base/core/result.h"

namespace regatta::cli {

void add_platform_access_commands(CLI::App& app, int& exit_status);

// A join token for `uses` servers, valid for an hour: rg1.HASH.ID.SECRET, with the hash of the
// authority `ca` (PEM text).
Result<std::string> make_join_token(PlatformClient& client, const std::string& ca, int uses,
                                    const std::string& name);

// The address at which a browser is logged in as the caller, once, within a quarter of an hour. The
// token stands in the fragment, which no browser sends and no log has.
Result<std::string> make_login_url(PlatformClient& client, const std::string& server);

}  // namespace regatta::cli
