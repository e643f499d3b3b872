// experimental/remote/internal/exports.h: the exports of the client library.
#pragma once

#include "experimental/remote/internal/caller.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {
#define REMOTE_TYPE(symbol)                     \
  decltype(regatta::remote::Caller<             \
           regatta::remote::CallNumber::symbol, \
           regatta::remote::Row<regatta::remote::CallNumber::symbol>::Arguments>::call)
#define CALL(base, symbol, ...) REMOTE_TYPE(symbol) symbol;
#define TWIN CALL
#define HAND CALL
#define LOCAL(base, symbol, since, ...) CUresult symbol(__VA_ARGS__);
#define LOCAL_TWIN LOCAL
#define REFUSED(base, symbol, since) CUresult symbol();
#define REFUSED_TWIN REFUSED
#include "experimental/remote/internal/calls.inc"
}
// NOLINTEND(readability-identifier-naming)
